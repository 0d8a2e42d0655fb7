/** What packs and builds say in requirements files, read line by line. Pure. */

/** What belongs to the base of a build: nothing that a pack or a pin asks for changes it. */
const TORCH_FAMILY =
  /^(?:torch|torchvision|torchaudio|triton|pytorch-triton(?:-rocm)?|triton-windows|nvidia-.+|cuda-(?:toolkit|bindings|pathfinder))$/

/** A name as packages are compared by it. */
export function normalizePackage(name: string): string {
  return name.toLowerCase().replace(/[-_.]+/g, '-')
}

const REQUIREMENT = /^([A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)\s*(?:\[[^\]]*\])?\s*(.*)$/s

export interface Requirement {
  readonly name: string
  readonly text: string
}

interface ReadRequirements {
  readonly requirements: readonly Requirement[]
  /** Other files to read, relative to the one that names them. */
  readonly includes: readonly string[]
  /** Lines that are left out, with the reason. */
  readonly skipped: readonly string[]
  /** Lines that cannot be left out without changing what is meant, with the reason. */
  readonly refused: readonly string[]
}

export function readRequirements(text: string): ReadRequirements {
  const read = {
    requirements: [] as Requirement[],
    includes: [] as string[],
    skipped: [] as string[],
    refused: [] as string[],
  }
  const joined = text.replace(/^\ufeff/, '').replace(/\\\r?\n/g, ' ')
  for (const raw of joined.split(/\r?\n/)) {
    const line = raw.replace(/(^|\s)#.*$/, '').trim()
    if (line === '') continue
    const include = /^(?:-r|--requirement)[ =]\s*(.+)$/.exec(line)?.[1]
    if (include !== undefined) read.includes.push(include.trim())
    else if (/^(?:-e|--editable)\b/.test(line))
      read.refused.push(`${line} (a package from a folder cannot be pinned by its hash)`)
    else if (line.startsWith('-')) read.skipped.push(`${line} (the indexes of the builder count)`)
    else readOne(line, read)
  }
  return read
}

function readOne(line: string, read: { requirements: Requirement[]; refused: string[] }): void {
  const [, name, rest = ''] = REQUIREMENT.exec(line) ?? []
  // Such as `--hash` of a frozen file: the lock has hashes of its own.
  const text = line.replace(/\s+--[a-z-]+[ =].*$/s, '')
  if (name === undefined || /^[\w.-]*[/\\]|^\w+:\/\//.test(line))
    read.refused.push(`${line} (it is no name of a package)`)
  else if (/^@\s*(?!https?:)/.test(rest))
    read.refused.push(`${line} (only packages from an index or an https address can be pinned by their hash)`)
  else read.requirements.push({ name: normalizePackage(name), text })
}

export function isOfTorch({ name }: Requirement): boolean {
  return TORCH_FAMILY.test(name)
}

/** From the text of a lock: the version of each package. */
export function lockedVersions(wheels: string): ReadonlyMap<string, string> {
  const found = [...wheels.matchAll(/^([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?==([^\s;\\]+)/gm)]
  return new Map(found.map(([, name = '', version = '']) => [normalizePackage(name), version]))
}

/** From `uv pip freeze` or `pip list`. */
export const installedVersions = lockedVersions

/** Of what torch in a lock is made for another variant, in words; null: of nothing that it says. */
export function findOtherVariant(wheels: string, variant: string, cuda: number | null): string | null {
  const locked = lockedVersions(wheels)
  for (const name of ['torch', 'torchvision', 'torchaudio']) {
    const version = locked.get(name)
    const label = /\+((?:cpu|cu|rocm)[\d.]*)/.exec(version ?? '')?.[1]
    if (label !== undefined && label !== variant) return `${name} ${version} is for ${label}`
  }
  if (!locked.has('torch') || locked.get('torch')?.includes('+') === true) return null
  // A torch without a label says by its needs what it is for.
  const needs = ['nvidia-cublas', 'nvidia-cublas-cu12', 'nvidia-cublas-cu11'].find((name) => locked.has(name))
  if (needs === undefined) return null
  const needed = Number(/\d+$/.exec(needs)?.[0] ?? 13)
  return needed === cuda ? null : `torch ${locked.get('torch')} is for CUDA ${needed}`
}
