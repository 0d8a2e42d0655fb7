/** The fake's folders of models: a folder of the disk where it was given one, else the checkpoints that it was told to have. */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

const FOLDERS = ['checkpoints', 'loras', 'vae']
/** As ComfyUI lists them; nothing else in a folder is a model. */
const SUFFIX = /\.(?:ckpt|pt|pt2|bin|pth|safetensors|pkl|sft)$/
const TOLD_BYTES = 1000

interface ModelFile {
  readonly name: string
  readonly pathIndex: number
  readonly size: number
  readonly modified: number
  readonly created: number
}

export interface FakeModels {
  folders(): readonly { readonly name: string; readonly folders: readonly string[] }[]
  /** null: there is no such folder. */
  files(folder: string): readonly ModelFile[] | null
}

export function createFakeModels(directory: string | null, checkpoints: () => readonly string[]): FakeModels {
  const pathOf = (folder: string) => (directory === null ? `/fake/models/${folder}` : join(directory, folder))
  return {
    folders: () => FOLDERS.map((name) => ({ name, folders: [pathOf(name)] })),
    files(folder) {
      if (!FOLDERS.includes(folder)) return null
      if (directory !== null) return onDisk(pathOf(folder))
      const told = folder === 'checkpoints' ? checkpoints() : []
      return told.map((name) => ({ name, pathIndex: 0, size: TOLD_BYTES, modified: 1, created: 1 }))
    },
  }
}

function onDisk(path: string): ModelFile[] {
  return readdirSync(path, { recursive: true, encoding: 'utf8' })
    .filter((name) => SUFFIX.test(name))
    .sort()
    .map((name) => {
      const { size, mtimeMs } = statSync(join(path, name))
      return { name, pathIndex: 0, size, modified: mtimeMs / 1000, created: mtimeMs / 1000 }
    })
}
