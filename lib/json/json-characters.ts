/** The characters that structure JSON text; as bytes of UTF-8 they have the same codes. */
export const QUOTE = 0x22
export const BACKSLASH = 0x5c
export const COMMA = 0x2c
export const COLON = 0x3a
export const OPENING_BRACKET = 0x5b
export const CLOSING_BRACKET = 0x5d
export const OPENING_BRACE = 0x7b
export const CLOSING_BRACE = 0x7d
