/** The data files of a catalogue on disk: one folder per provider, in it `provider.json` and one file per model. */
import { readdir, readFile, stat } from 'node:fs/promises'
import path from 'node:path'

// A long schema has a few kilobytes; a file of this size is not part of a catalogue.
const FILE_MAX_BYTES = 1024 * 1024
const MAX_FILES = 10_000

export interface CatalogFile {
  /** Relative to the catalogue's directory, with slashes: `bfl/flux-2-pro.json`. */
  readonly file: string
  readonly text: string
}

/** In the order of their names. Throws CatalogFolderError. */
export async function readCatalogFiles(directory: string): Promise<CatalogFile[]> {
  const files: CatalogFile[] = []
  for (const file of await listCatalogFiles(directory)) files.push(await readOne(directory, file))
  return files
}

/** As `CatalogFile.file`. Hidden files and everything that is no `.json` are passed over. Throws CatalogFolderError. */
export async function listCatalogFiles(directory: string): Promise<string[]> {
  const files: string[] = []
  for (const provider of await subfolders(directory)) {
    const names = await readdir(path.join(directory, provider)).catch((error: unknown) => unreadable(provider, error))
    for (const name of names.filter((entry) => entry.endsWith('.json') && !entry.startsWith('.')).sort())
      files.push(`${provider}/${name}`)
    if (files.length > MAX_FILES) throw new CatalogFolderError(`holds more than ${MAX_FILES} files`)
  }
  return files
}

/** The catalogue does not exist, or is not a catalogue. */
export class CatalogFolderError extends Error {
  override readonly name = 'CatalogFolderError'
}

async function subfolders(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') throw new CatalogFolderError('there is no such folder; create it or correct the path')
    if (error.code === 'ENOTDIR')
      throw new CatalogFolderError('is a file; a catalogue is a folder with one folder per provider')
    return unreadable('it', error)
  })
  return entries
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
    .map(({ name }) => name)
    .sort()
}

async function readOne(directory: string, file: string): Promise<CatalogFile> {
  const full = path.join(directory, file)
  try {
    const { size } = await stat(full)
    if (size > FILE_MAX_BYTES) throw new CatalogFolderError(`${file} is larger than ${FILE_MAX_BYTES} bytes`)
    return { file, text: await readFile(full, 'utf8') }
  } catch (error) {
    return unreadable(file, error)
  }
}

function unreadable(what: string, error: unknown): never {
  const { code } = error as NodeJS.ErrnoException
  throw code === undefined ? error : new CatalogFolderError(`${what} cannot be read (${code})`)
}
