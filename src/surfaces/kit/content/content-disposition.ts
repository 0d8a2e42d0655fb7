/** File names in a `Content-Disposition` header (RFC 6266). */

/**
 * The `filename` parameter, and `filename*` for a name that it cannot spell. `ascii` is the name as it can stand between quotes;
 * `isExact` says that it is the whole truth.
 */
export function toFileNameParameters(name: string, ascii: string, isExact: boolean): string {
  const plain = `filename="${ascii}"`
  return isExact ? plain : `${plain}; filename*=UTF-8''${encodeExtended(name)}`
}

/** RFC 5987: encodeURIComponent leaves a few characters that its grammar does not allow. */
function encodeExtended(name: string): string {
  const escaped = encodeURIComponent(name.toWellFormed())
  return escaped.replace(/['()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
}
