//! Enums whose variants have a text each.

/// Declares an enum of things that people see by a text: each is listed once, with its text, in the order of texts if the
/// list is. A variant that is misspelt does not compile; a text cannot be said in two ways.
#[macro_export]
macro_rules! named {
    ($(#[$doc:meta])* $visibility:vis enum $name:ident { $($variant:ident: $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        $visibility enum $name {
            $(#[doc = $text] $variant,)+
        }

        impl $name {
            /// All of them, as listed.
            #[allow(dead_code, reason = "not every list is walked over")]
            $visibility const ALL: &[$name] = &[$($name::$variant),+];

            $visibility const fn text(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)+
                }
            }
        }
    };
}
