//! What parameters and members may be that are texts of a form.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// Types of texts by their patterns.
macro_rules! texts {
    ($($(#[$about:meta])* $name:ident: $($rule:literal)+ $(, $kind:literal)?;)*) => { $(
        $(#[$about])*
        pub(crate) struct $name;

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": ["string" $(, $kind)?], "pattern": concat!($($rule),+) })
            }
        }
    )* };
}

texts! {
    /// A status of an answer, a class of them, or `none`.
    StatusText: "^([1-9][0-9]{2}|[1-5]xx|none)$";
    /// A point in time, RFC 3339.
    Moment: "^[12][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])"
        "T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-](0[0-9]|1[0-9]|2[0-3]):[0-5][0-9])$";
    /// A scope's name.
    ScopeName: "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$";
    /// An exchange's id.
    ExchangeIdText: "^[0-9a-f]{24}$";
    /// The name that a page of a list comes after.
    AfterName: "^after[.][A-Za-z0-9._/-]{1,200}$";
    /// A row's number in a list that counts up.
    RowNumber: "^[1-9][0-9]{0,17}$";
    /// A text; a number is taken for one.
    TextOrNumber: "", "number";
    /// The same where it is a name.
    NameOrNumber: "^[A-Za-z0-9._-]{1,64}$", "number";
    /// A SHA-256.
    Sha256Text: "^[0-9a-fA-F]{64}$";
}
