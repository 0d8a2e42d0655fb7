/**
 * Removes what a run saved into its folder on a server once that is safe: when the run is over (a later node may read what an
 * earlier one saved), and every reported file was released or will not be read any more. Files in the server's asset store are
 * removed at once, others a while later and together.
 */
import type { Remover, ServerFile } from './remove-files.ts'

export interface OutputCleanup {
  /** A file that is going to be read. */
  reported(file: ServerFile): void
  /** Its bytes are kept elsewhere by now, or not wanted. Never rejects. */
  released(file: ServerFile): Promise<void>
  /** What is read from now on may be the rest of a removal: a server that cannot remove a file has it emptied. */
  isRemoved(file: ServerFile): boolean
  /** The run is over, so nothing more is saved. Never rejects. */
  runEnded(): Promise<void>
}

interface OutputCleanupDeps {
  readonly remover: Remover
  /** Within the output folder. Nothing outside of it is removed. */
  readonly folder: string
  /** How long after the last file was released. */
  readonly removeAfterMs: number
  /** After this time, files that were not released count as given up. */
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
  /** How often a file was reported and not released yet: two nodes may report the same one. */
  const unreleased = new Map<string, number>()
  const removed = new Set<string>()
  let isOver = false
  let timer: NodeJS.Timeout | null = null

  function isOwn(file: ServerFile): boolean {
    return file.folder === 'output' && isWithin(file.subfolder, folder)
  }

  async function removeAssets(): Promise<void> {
    for (const [key, file] of assets) {
      if (unreleased.has(key)) continue
      assets.delete(key)
      removed.add(key)
      await remover.removeFile(file)
    }
  }

  function removeLater(): void {
    if (own.size === 0) return
    stopWaiting()
    if (closing.aborted) {
      removeNow()
      return
    }
    closing.addEventListener('abort', removeNow)
    timer = setTimeout(removeNow, unreleased.size === 0 ? removeAfterMs : giveUpAfterMs)
  }

  function stopWaiting(): void {
    if (timer !== null) clearTimeout(timer)
    timer = null
    closing.removeEventListener('abort', removeNow)
  }

  function removeNow(): void {
    stopWaiting()
    // When the engine closes, files that are still being read stay.
    const isDone = unreleased.size === 0 || !closing.aborted
    if (isDone && own.size > 0) {
      for (const key of own.keys()) removed.add(key)
      void remover.removeFolder(folder, [...own.values()])
    }
    own.clear()
  }

  return {
    reported(file) {
      const key = keyOf(file)
      if (file.assetId != null) assets.set(key, file)
      else if (isOwn(file)) own.set(key, file)
      else return
      unreleased.set(key, (unreleased.get(key) ?? 0) + 1)
    },
    isRemoved: (file) => removed.has(keyOf(file)),
    async released(file) {
      const key = keyOf(file)
      const left = (unreleased.get(key) ?? 1) - 1
      if (left > 0) unreleased.set(key, left)
      else unreleased.delete(key)
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
