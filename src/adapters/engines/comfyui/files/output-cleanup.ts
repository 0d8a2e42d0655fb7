/**
 * Removes what an attempt saved on its server once that is safe: when the run is over (a later node may read what an earlier one
 * saved), and every reported file was read or will not be read any more. Files in the server's asset store are removed at once,
 * others a while later and together.
 */
import type { Remover, ServerFile } from './remove-files.ts'

export interface OutputCleanup {
  /** A file that is going to be read. */
  reported(file: ServerFile): void
  /** It was read to its end. Never rejects. */
  read(file: ServerFile): Promise<void>
  /** The run is over, so nothing more is saved. Never rejects. */
  runEnded(): Promise<void>
}

interface OutputCleanupDeps {
  readonly remover: Remover
  /** The folder of the attempt within the output folder. Nothing outside of it is removed. */
  readonly folder: string
  /** How long after the last file was read. */
  readonly removeAfterMs: number
  /** After this time, files that were not read count as given up. */
  readonly giveUpAfterMs: number
  /** Aborted when the engine closes: then everything that may be removed is removed at once. */
  readonly closing: AbortSignal
}

export function createOutputCleanup({
  remover,
  folder,
  removeAfterMs,
  giveUpAfterMs,
  closing,
}: OutputCleanupDeps): OutputCleanup {
  const own = new Map<string, ServerFile>()
  const assets = new Map<string, ServerFile>()
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
    // When the engine closes, files that are still being read stay.
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
    async runEnded() {
      isOver = true
      removeLater()
      await removeAssets()
    },
  }
}

function isWithin(subfolder: string, folder: string): boolean {
  return (subfolder === folder || subfolder.startsWith(`${folder}/`)) && !subfolder.split('/').includes('..')
}

function keyOf({ folder, subfolder, filename }: ServerFile): string {
  return `${folder}\n${subfolder}\n${filename}`
}
