//! Enums whose values have names in files and in the API.

/// Defines an enum from its values and their names.
#[macro_export]
macro_rules! named {
    ($(#[$meta:meta])* $vis:vis enum $enum:ident { $($(#[$about:meta])* $value:ident = $name:literal,)* }) => {
        $(#[$meta])*
        $vis enum $enum { $($(#[$about])* $value,)* }

        impl $enum {
            /// Every value.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$value),*];

            /// Every value with its name.
            pub const NAMES: &[(&str, Self)] = &[$(($name, Self::$value)),*];

            /// Its name in files and in the API.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$value => $name,)* }
            }

            /// The value with this name.
            pub fn parse(name: &str) -> Option<Self> {
                let found = Self::NAMES.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| *value)
            }
        }
    };
}
