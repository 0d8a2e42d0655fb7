/** Whether a path stays inside a folder, whatever symbolic links stand in between. */
import { lstat, realpath } from 'node:fs/promises'
import { dirname, sep } from 'node:path'

/** `base` is a real path. The deepest folder of the path that exists must really lie inside it; the last part is not looked at. */
export async function leadsOut(base: string, path: string): Promise<boolean> {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    const real = await realpath(folder).catch(nullWhenMissing)
    if (real === base || real?.startsWith(base + sep)) return false
    // A link to nothing may lead out as well: somebody may create its target.
    const isDangling = real === null && (await lstat(folder).catch(nullWhenMissing))?.isSymbolicLink()
    if (real !== null || isDangling) return true
  }
}

/** For a look at something that need not exist. */
export function nullWhenMissing(error: unknown): null {
  const isMissing = error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')
  if (isMissing) return null
  throw error
}
