/**
 * The files below a folder that somebody else filled. Nothing leads out of it: symbolic links are reported, not opened. Bounded in
 * number and depth. Hidden files are the other program's own and are left alone.
 */
import type { Dirent } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import path from 'node:path'

export interface FoundFile {
  readonly file: string
  /** Relative to the folder, with `/` between its parts. */
  readonly name: string
  readonly sizeBytes: number
  readonly modifiedAt: Date
}

/** Something that cannot be brought, and why, as the end of a sentence. */
export interface Obstacle {
  readonly name: string
  readonly reason: string
}

interface FolderContent {
  readonly files: readonly FoundFile[]
  readonly obstacles: readonly Obstacle[]
}

const MAX_FILES = 20_000
const MAX_DEPTH = 16

export async function walkFolder(folder: string): Promise<FolderContent> {
  const files: FoundFile[] = []
  const obstacles: Obstacle[] = []
  const refuse = (name: string, reason: string) => void obstacles.push({ name, reason })

  async function visit(within: string, depth: number): Promise<void> {
    if (depth > MAX_DEPTH) return refuse(within, `is deeper than ${MAX_DEPTH} folders`)
    for (const entry of await list(within)) {
      const name = within === '' ? entry.name : `${within}/${entry.name}`
      if (entry.name.startsWith('.')) continue
      if (files.length >= MAX_FILES) return
      if (entry.isSymbolicLink()) refuse(name, 'is a symbolic link, and these are not followed')
      else if (entry.isDirectory()) await visit(name, depth + 1)
      else if (entry.isFile()) await add(name)
      else refuse(name, 'is neither a file nor a folder')
    }
  }

  async function list(within: string): Promise<Dirent[]> {
    try {
      const entries = await readdir(path.join(folder, within), { withFileTypes: true })
      return entries.sort((a, b) => (a.name < b.name ? -1 : 1))
    } catch (error) {
      refuse(within, toReadFailure(error))
      return []
    }
  }

  async function add(name: string): Promise<void> {
    const file = path.join(folder, name)
    try {
      const { size, mtime } = await lstat(file)
      files.push({ file, name, sizeBytes: size, modifiedAt: mtime })
    } catch (error) {
      refuse(name, toReadFailure(error))
    }
  }

  await visit('', 0)
  if (files.length >= MAX_FILES) refuse('', `has more than ${MAX_FILES} files; the others were not looked at`)
  return { files, obstacles }
}

export function toReadFailure(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  return code === 'ENOENT' ? 'is gone' : `cannot be read: ${code ?? message}`
}
