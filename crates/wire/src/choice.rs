//! Settings that are one of a few, each with a name for operators and a number for records and messages.

use crate::DecodeError;

/// The name is none of those there are.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{name}' is no {what}: there are {all}", all = all.join(", "))]
pub struct UnknownName {
    pub(crate) what: &'static str,
    pub(crate) name: String,
    pub(crate) all: Vec<&'static str>,
}

/// Declares such a setting: what it is called, then of each choice what it is, its variant and its name. The place of each,
/// counted from 1, is its number, so that a new one goes to the end; 0, in records that say nothing, is the first. At the end
/// may stand a function that replaces a choice by one that the reader knows.
#[macro_export]
macro_rules! choices {
    ($(#[$doc:meta])+ $name:ident, $what:literal; $(#[$first_meta:meta])+ $first:ident = $first_name:literal,
     $($(#[$meta:meta])+ $variant:ident = $text:literal,)*
     $(; known_to $known_to:path)?) => {
        $(#[$doc])+
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub enum $name {
            $(#[$first_meta])+
            #[default]
            $first,
            $($(#[$meta])+ $variant,)*
        }

        impl $name {
            pub const ALL: [$name; 1 + <[&str]>::len(&[$($text),*])] = [$name::$first, $($name::$variant),*];

            /// Its name, as operators write it.
            pub fn name(self) -> &'static str {
                match self {
                    $name::$first => $first_name,
                    $($name::$variant => $text,)*
                }
            }

            /// Its number in records, from 1.
            pub(crate) fn code(self) -> u8 {
                $name::ALL.iter().position(|choice| *choice == self).map_or(0, |at| at as u8 + 1)
            }

            /// The choice of a number.
            pub(crate) fn of_code(code: u8) -> Result<$name, $crate::DecodeError> {
                $crate::choice::of_code(&$name::ALL, code, $what)
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.name())
            }
        }

        impl core::str::FromStr for $name {
            type Err = $crate::UnknownName;
            fn from_str(name: &str) -> Result<$name, $crate::UnknownName> {
                let known = $name::ALL.into_iter().find(|choice| choice.name() == name);
                known.ok_or_else(|| $crate::UnknownName {
                    what: $what,
                    name: name.to_owned(),
                    all: $name::ALL.map($name::name).to_vec(),
                })
            }
        }

        impl $crate::Wire for $name {
            fn encode(&self, out: &mut $crate::Writer<'_>) {
                let choice = *self;
                $(let choice = $known_to(out.version(), choice);)?
                out.push(choice.code());
            }
            fn decode(reader: &mut $crate::Reader<'_>) -> Result<$name, $crate::DecodeError> {
                let code = <u8 as $crate::Wire>::decode(reader)?;
                let choice = $name::of_code(code)?;
                // Whoever speaks an older version knows no later choice.
                $(if $known_to(reader.version(), choice) != choice {
                    return Err($crate::DecodeError::UnknownTag { what: $what, tag: code });
                })?
                Ok(choice)
            }
        }
    };
}

pub(crate) fn of_code<T: Copy + Default>(all: &[T], code: u8, what: &'static str) -> Result<T, DecodeError> {
    match code.checked_sub(1) {
        None => Ok(T::default()),
        Some(at) => all.get(usize::from(at)).copied().ok_or(DecodeError::UnknownTag { what, tag: code }),
    }
}
