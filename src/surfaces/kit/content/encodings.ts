/** Whether a caller takes an answer in this encoding (RFC 9110, 12.5.3); a weight of zero means that it does not. */
export function acceptsEncoding(name: 'br' | 'gzip', header: string | string[] | undefined): boolean {
  const pattern = `(?:^|,)\\s*${name}\\s*(?:;\\s*q=(?!0(?:\\.0*)?\\s*(?:,|$))|,|$)`
  return new RegExp(pattern).test(String(header ?? ''))
}
