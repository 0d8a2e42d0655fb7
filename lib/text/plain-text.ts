/** Texts that people give things, which are shown in pages, terminals and generated files: without what cannot be seen and changes what is. */

// Control characters, halves of letters, and what makes a reader see another order than the one that is written.
const UNSEEN = /[\p{Cc}\p{Cs}\u2028-\u202e\u2066-\u2069]/u
const UNSEEN_IN_LINES = /[^\P{Cc}\n\r\t]|[\p{Cs}\u2028-\u202e\u2066-\u2069]/u

/** One line. */
export const isPlainLine = (text: string): boolean => !UNSEEN.test(text)

/** Line ends and tabs included. */
export const isPlainText = (text: string): boolean => !UNSEEN_IN_LINES.test(text)

/** What comes from a file that nobody can be asked about. */
export const toPlainLine = (text: string): string => text.replaceAll(new RegExp(UNSEEN, 'gu'), ' ')
