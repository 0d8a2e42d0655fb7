/** Which files of the given folders are node modules: every .ts, .js and .mjs directly inside, in the order of their names. */
import { type Dirent, readdirSync, realpathSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

/** Why custom nodes cannot be loaded. The message is one line for the operator: it names the file and what to do. */
export class NodeModuleError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'NodeModuleError'
  }
}

/** A module, by where it lies and how it is spoken of. */
export interface ModuleFile {
  readonly url: string
  readonly path: string
}

const MODULE_NAME = /^[^.].*\.(ts|js|mjs)$/
const TYPES_ONLY = /\.d\.ts$/
// Every module is loaded in every thread; a folder with more than this was named by mistake.
const MAX_MODULES = 1000

function readFolder<T>(folder: string, read: (folder: string) => T): T {
  try {
    return read(folder)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unreadable'
    throw new NodeModuleError(`the nodes folder ${folder} cannot be read (${code}); correct --nodes or create it`)
  }
}

/** As the module loader will name them, each once. */
export function resolveFolders(folders: readonly string[]): readonly string[] {
  return [...new Set(folders.map((folder) => readFolder(folder, (name) => realpathSync(name))))]
}

export function findModules(folders: readonly string[]): readonly ModuleFile[] {
  const files = folders.flatMap((folder) =>
    readFolder(folder, (name): Dirent[] => readdirSync(name, { withFileTypes: true }))
      .filter((entry) => !entry.isDirectory() && MODULE_NAME.test(entry.name) && !TYPES_ONLY.test(entry.name))
      .map((entry) => path.join(folder, entry.name))
      .sort(),
  )
  if (files.length > MAX_MODULES) {
    throw new NodeModuleError(`the nodes folders hold ${files.length} modules; at most ${MAX_MODULES} are allowed`)
  }
  return files.map((file) => ({ path: file, url: pathToFileURL(file).href }))
}
