/** a to z: how values are called in templates and expressions. */
export const LETTERS: readonly string[] = Array.from('abcdefghijklmnopqrstuvwxyz')
