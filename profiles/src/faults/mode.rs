//! What a fault says of itself, in a file of its own, and the enum of a family that is made of them.

use std::fmt::Debug;

use serde_json::{Map, Value};
pub(crate) use squall_documents::Fields;

use crate::allowance::Allowance;
use crate::budget::Budget;
use crate::dice::Dice;
use crate::fault::ResultChange;
pub(crate) use crate::fault::Tools;
use crate::matching::Touches;
use crate::plan::{Plan, VerdictIndex};

/// One way to fail, under the word by which files call it. What has a default here is for the few that
/// need it.
pub(crate) trait FaultMode: Debug + Clone + PartialEq {
    /// The word in files.
    const NAME: &'static str;

    /// Of these at least one has to be written; none: every parameter has a default.
    const NEEDS: &'static [&'static str] = &[];

    /// What of an exchange it touches, where that is not the call itself.
    const TOUCHES: Touches = Touches::Calls;

    /// Whether `body` is a parameter of it, and no condition.
    const HAS_BODY: bool = false;

    /// Whether it makes a call in a model's answer wrong: there `tool` is that call's name.
    const OF_CALLS: bool = false;

    /// Of a tool's fault: what becomes of a result in the words that a model is sent
    /// (`at: model_input`); `None`: it is about the wire.
    const TOLD: Option<Told<Self>> = None;

    /// Reads its parameters, beside match and trigger; `tools` are those that the rule is about. `None`: what is
    /// written makes no fault, which is reported.
    fn read(fields: &mut Fields<'_, '_>, tools: &Tools) -> Option<Self>;

    /// Writes it into `plan` on behalf of `verdict`; an error says why it cannot have its way. Pure: no
    /// clock, no socket, no dice but these.
    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, dice: &mut Dice) -> Result<(), String>;

    /// The same for an exchange that is no model call, where that is something else.
    fn apply_to_tools(
        &self,
        plan: &mut Plan,
        verdict: VerdictIndex,
        dice: &mut Dice,
    ) -> Result<(), String> {
        self.apply(plan, verdict, dice)
    }

    /// Writes down the parameters as they are used, in the words of files: what the journal keeps.
    fn parameters(&self, _into: &mut Map<String, Value>) {}

    /// Whether what it does hangs on a draw of its own, beside the trigger's: so does a canary.
    fn is_random(&self) -> bool {
        false
    }

    /// Whether it has to tell the call from others on the wire, which the fingerprint does.
    fn tells_calls_apart(&self) -> bool {
        false
    }

    /// Whether it ends a connection before there is an exchange: decided at a CONNECT.
    fn is_of_the_connection(&self) -> bool {
        false
    }

    /// What may be asked before it fires at all: it limits what goes beyond.
    fn allowance(&self) -> Option<Allowance> {
        None
    }

    /// What may be used up before it fires at all.
    fn budget(&self) -> Option<Budget> {
        None
    }

    /// Whether what it does, or what it says of tokens, hangs on how many there are.
    fn counts_tokens(&self) -> bool {
        false
    }

    /// Whether when or how it fires does.
    fn hangs_on_tokens(&self) -> bool {
        self.counts_tokens()
    }

    /// Whether it decides what a model's answer says or how it ends, so that no other can.
    fn decides_the_answer(&self) -> bool {
        false
    }

    /// What becomes of a tool's result in the words that a model is sent.
    fn told(
        &self,
        plan: &mut Plan,
        verdict: VerdictIndex,
        dice: &mut Dice,
    ) -> Result<ResultChange, String> {
        match Self::TOLD {
            Some(told) => Ok(told(self, plan, verdict, dice)),
            None => Err("it is about the wire, not about what a model is told".to_owned()),
        }
    }
}

/// What becomes of a tool's result, as the model is to read it.
pub(crate) type Told<F> = fn(&F, &mut Plan, VerdictIndex, &mut Dice) -> ResultChange;

/// The enum of a family, a line for each of its faults: the file below the family's and the type in
/// it. Their order is that of the reference, of help and of the schema.
macro_rules! family {
    (
        $(#[$doc:meta])*
        $name:ident of $family:ident:
        $($file:ident::$fault:ident,)*
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub enum $name {
            $(
                #[doc = concat!("See `", stringify!($file), ".rs`.")]
                $fault($file::$fault),
            )*
        }

        impl $name {
            /// Its rows in the table of modes.
            pub(crate) const MODES: &'static [$crate::profile::modes::Mode] = &[$(
                $crate::profile::modes::Mode::of::<$file::$fault>(
                    $crate::rule::Family::$family,
                    |fields, tools| {
                        let fault = <$file::$fault as $crate::faults::mode::FaultMode>::read;
                        let fault = fault(fields, tools).map(Self::$fault);
                        fault.map($crate::fault::Fault::$family)
                    },
                ),
            )*];
        }

        $crate::faults::mode::asked! {
            $name { $($fault)* }
            apply(plan: &mut Plan, verdict: VerdictIndex, dice: &mut Dice)
                (plan, verdict, dice) -> Result<(), String>;
            apply_to_tools(plan: &mut Plan, verdict: VerdictIndex, dice: &mut Dice)
                (plan, verdict, dice) -> Result<(), String>;
            told(plan: &mut Plan, verdict: VerdictIndex, dice: &mut Dice)
                (plan, verdict, dice) -> Result<ResultChange, String>;
            parameters(into: &mut Map<String, Value>) (into) -> ();
            is_random() () -> bool;
            tells_calls_apart() () -> bool;
            is_of_the_connection() () -> bool;
            allowance() () -> Option<Allowance>;
            budget() () -> Option<Budget>;
            counts_tokens() () -> bool;
            hangs_on_tokens() () -> bool;
            decides_the_answer() () -> bool;
        }
    };
}

/// Methods of a family that ask the fault it is: what they take, and what of it is handed on.
macro_rules! asked {
    ($name:ident $faults:tt $($method:ident($($takes:tt)*) $given:tt -> $answer:ty;)*) => {
        const _: () = {
            use $crate::faults::mode::imports::*;

            impl $name {
                $($crate::faults::mode::asked! {
                    @one $faults $method($($takes)*) $given -> $answer
                })*
            }
        };
    };
    (@one {$($fault:ident)*} $method:ident($($takes:tt)*) $given:tt -> $answer:ty) => {
        #[doc = concat!("See `FaultMode::", stringify!($method), "`.")]
        pub(crate) fn $method(&self, $($takes)*) -> $answer {
            match self {
                $(Self::$fault(fault) => fault.$method $given,)*
            }
        }
    };
}

/// The names that the methods of a family are written with.
pub(crate) mod imports {
    pub(crate) use serde_json::{Map, Value};

    pub(crate) use super::FaultMode;
    pub(crate) use crate::allowance::Allowance;
    pub(crate) use crate::budget::Budget;
    pub(crate) use crate::dice::Dice;
    pub(crate) use crate::fault::ResultChange;
    pub(crate) use crate::plan::{Plan, VerdictIndex};
}

pub(crate) use {asked, family};
