/**
 * What an attempt saved on its server, until it can go: the run must be over (a later node may read what an earlier one saved),
 * and every reported file must have been read, or never be read any more. Files of an asset store go at once, others a while
 * later and together.
 */
import type { LeftFile, Remover } from './remove-files.ts'

export interface LeftFiles {
  /** A file that somebody is going to read. */
  reported(file: LeftFile): void
  /** It was read to its end. Never rejects. */
  read(file: LeftFile): Promise<void>
  /** Nothing more is saved. Never rejects. */
  over(): Promise<void>
}

export interface LeftFilesDeps {
  readonly remover: Remover
  /** Of the attempt, within the output folder: nothing outside is ever touched. */
  readonly folder: string
  /** So long after the last file was read. */
  readonly removeAfterMs: number
  /** After that long nobody reads any more: the outputs were given up. */
  readonly giveUpAfterMs: number
  /** Aborted when the engine closes: what can go goes at once. */
  readonly closing: AbortSignal
}

export function createLeftFiles({ remover, folder, removeAfterMs, giveUpAfterMs, closing }: LeftFilesDeps): LeftFiles {
  const own = new Map<string, LeftFile>()
  const assets = new Map<string, LeftFile>()
  const unread = new Set<string>()
  let isOver = false
  let timer: NodeJS.Timeout | null = null

  async function removeAssets(): Promise<void> {
    for (const [key, file] of assets) {
      if (unread.has(key)) continue
      assets.delete(key)
      await remover.removeFile(file)
    }
  }

  function removeLater(): void {
    if (own.size === 0) return
    if (timer !== null) clearTimeout(timer)
    else closing.addEventListener('abort', removeNow)
    if (closing.aborted) removeNow()
    else timer = setTimeout(removeNow, unread.size === 0 ? removeAfterMs : giveUpAfterMs)
  }

  function removeNow(): void {
    if (timer !== null) clearTimeout(timer)
    closing.removeEventListener('abort', removeNow)
    // What is cut off in the middle of its reading stays.
    const isDone = unread.size === 0 || !closing.aborted
    if (isDone && own.size > 0) void remover.removeFolder(folder, [...own.values()])
    own.clear()
  }

  return {
    reported(file) {
      const key = keyOf(file)
      const isOwn = file.folder === 'output' && isWithin(file.subfolder, folder)
      if (file.assetId != null) assets.set(key, file)
      else if (isOwn) own.set(key, file)
      else return
      unread.add(key)
    },
    async read(file) {
      unread.delete(keyOf(file))
      if (!isOver) return
      removeLater()
      await removeAssets()
    },
    async over() {
      isOver = true
      removeLater()
      await removeAssets()
    },
  }
}

function isWithin(subfolder: string, folder: string): boolean {
  return (subfolder === folder || subfolder.startsWith(`${folder}/`)) && !subfolder.split('/').includes('..')
}

function keyOf({ folder, subfolder, filename }: LeftFile): string {
  return `${folder}\n${subfolder}\n${filename}`
}
