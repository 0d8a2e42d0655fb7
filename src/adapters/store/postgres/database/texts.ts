/** Postgres text cannot hold U+0000. Logs and messages of nodes may; it is shown as the symbol for it. */
export function toText(text: string): string
export function toText(text: string | null): string | null
export function toText(text: string | null): string | null {
  return text?.includes('\u0000') ? text.replaceAll('\u0000', '\u2400') : text
}
