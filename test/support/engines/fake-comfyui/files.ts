/** The folders of the fake server, in memory: they outlive a restart, as folders do. */
import type { SavedFile } from './node-classes.ts'

export type Folder = 'input' | 'output' | 'temp'

export class FakeFiles {
  readonly #files = new Map<string, Buffer>()

  static path(folder: Folder, subfolder: string, filename: string): string {
    return [folder, subfolder, filename].filter((part) => part !== '').join('/')
  }

  put(path: string, bytes: Buffer): void {
    this.#files.set(path, bytes)
  }

  get(path: string): Buffer | undefined {
    return this.#files.get(path)
  }

  paths(): string[] {
    return [...this.#files.keys()]
  }

  delete(path: string): boolean {
    return this.#files.delete(path)
  }

  clear(folder: Folder): void {
    for (const path of this.#files.keys()) if (path.startsWith(`${folder}/`)) this.#files.delete(path)
  }

  /** One after the largest number among names of the same prefix. */
  save(
    prefix: string,
    type: 'output' | 'temp',
    { extension, bytes, isFixed }: { extension: string; bytes: Buffer; isFixed: boolean },
  ): SavedFile {
    const cut = prefix.lastIndexOf('/')
    const subfolder = prefix.slice(0, Math.max(0, cut))
    const base = prefix.slice(cut + 1)
    const start = `${FakeFiles.path(type, subfolder, base)}_`
    const numbers = this.paths().flatMap((path) =>
      path.startsWith(start) ? [Number.parseInt(path.slice(start.length), 10) || 0] : [],
    )
    const number = isFixed ? 1 : Math.max(0, ...numbers) + 1
    const filename = `${isFixed ? 'same' : base}_${String(number).padStart(5, '0')}_.${extension}`
    const folder = isFixed ? '' : subfolder
    this.put(FakeFiles.path(type, folder, filename), bytes)
    return { filename, subfolder: folder, type }
  }
}
