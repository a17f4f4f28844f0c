//! Enums whose variants have a name in files, flags and reports, declared once.
//!
//! Each variant is written together with its name. The list of all variants and the lookup by name follow from that,
//! so that a new variant is one line. Not for enums whose variants carry data.

/// Declares an enum whose variants have names: `Variant = "name",`.
///
/// The enum gets, each as visible as the enum itself:
/// - `COUNT`: the number of variants;
/// - `ALL`: every variant, in the order of declaration, which is that of `variant as usize`;
/// - `const fn name(self) -> &'static str`: the name of a variant;
/// - `fn from_name(&str) -> Option<Self>`: the variant with exactly this name; a linear search.
///
/// Attributes and doc comments of the enum and of its variants are kept. Nothing checks that the names agree with those
/// that serde derives, or that they are unique: a test of the enum should.
///
/// ```
/// units::named_enum! {
///     /// Where a request waits.
///     #[derive(Debug, Clone, Copy, PartialEq, Eq)]
///     pub enum Place {
///         /// In the client's own queue.
///         Queue = "queue",
///         SocketBuffer = "socket_buffer",
///     }
/// }
///
/// assert_eq!(Place::COUNT, 2);
/// assert_eq!(Place::ALL[1].name(), "socket_buffer");
/// assert_eq!(Place::from_name("queue"), Some(Place::Queue));
/// assert_eq!(Place::from_name("Queue"), None);
/// ```
#[macro_export]
macro_rules! named_enum {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $Enum:ident {
            $( $(#[$of_variant:meta])* $Variant:ident = $name:literal, )+
        }
    ) => {
        $(#[$attribute])*
        $visibility enum $Enum {
            $( $(#[$of_variant])* $Variant, )+
        }

        impl $Enum {
            /// The number of variants.
            $visibility const COUNT: usize = [$( $name ),+].len();

            /// Every variant, in the order of declaration.
            $visibility const ALL: [$Enum; $Enum::COUNT] = [$( $Enum::$Variant ),+];

            /// The name of this variant in files, flags and reports.
            $visibility const fn name(self) -> &'static str {
                match self {
                    $( $Enum::$Variant => $name, )+
                }
            }

            /// The variant with exactly this name, or `None`.
            $visibility fn from_name(name: &str) -> Option<$Enum> {
                $Enum::ALL.into_iter().find(|variant| variant.name() == name)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    named_enum! {
        /// A colour.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        enum Colour {
            Red = "red",
            /// The default.
            #[default]
            DarkBlue = "dark-blue",
        }
    }

    #[test]
    fn variants_are_listed_in_order_and_found_by_name() {
        assert_eq!(Colour::ALL, [Colour::Red, Colour::DarkBlue]);
        assert_eq!(Colour::COUNT, 2);
        for (index, colour) in Colour::ALL.into_iter().enumerate() {
            assert_eq!(colour as usize, index);
            assert_eq!(Colour::from_name(colour.name()), Some(colour));
        }
    }

    #[test]
    fn names_match_exactly() {
        assert_eq!(Colour::DarkBlue.name(), "dark-blue");
        assert_eq!(Colour::from_name("Red"), None);
        assert_eq!(Colour::from_name("red "), None);
    }

    #[test]
    fn attributes_of_variants_are_kept() {
        assert_eq!(Colour::default(), Colour::DarkBlue);
    }
}
