/** Names for the files of an archive: none leads out of the folder that it is unpacked in, and none is there twice. */
const MAX_LENGTH = 150
// Control characters, separators, and what some file systems give a meaning.
const UNSAFE = /[\p{Cc}\p{Cf}/\\:*?"<>|]+/gu
const RESERVED = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i

export function toArchiveNames(names: readonly string[]): string[] {
  /** By name in small letters: the number to try next. */
  const taken = new Map<string, number>()
  return names.map((name) => {
    const safe = toSafeName(name)
    const [, stem = safe, extension = ''] = /^(.+?)(\.[^.]{1,16})?$/su.exec(safe) ?? []
    let unique = safe
    let number = taken.get(safe.toLowerCase()) ?? 2
    for (; taken.has(unique.toLowerCase()); number += 1) unique = `${stem} (${number})${extension}`
    taken.set(safe.toLowerCase(), number)
    if (unique !== safe) taken.set(unique.toLowerCase(), 2)
    return unique
  })
}

function toSafeName(name: string): string {
  const plain = name
    .toWellFormed()
    .replaceAll(UNSAFE, '_')
    .replace(/^[.\s]+/, '')
    .replace(/[.\s]+$/, '')
  const kept = plain.length > MAX_LENGTH ? plain.slice(-MAX_LENGTH) : plain
  if (kept === '') return 'file'
  return RESERVED.test(kept) ? `_${kept}` : kept
}
