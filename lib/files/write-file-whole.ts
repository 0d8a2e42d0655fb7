/** Replaces a small file in one step: a reader finds the old text or the new one, never a part of either. */
import { open, rename } from 'node:fs/promises'

interface WriteFileOptions {
  readonly mode: number
  /** Syncs the bytes before the file gets its name, so that a power cut cannot leave an empty file under that name. */
  readonly isDurable: boolean
  /** Where it is written first, beside the file. Processes that may write it at the same time each need their own. */
  readonly aside?: string
}

export async function writeFileWhole(
  path: string,
  text: string,
  { mode, isDurable, aside = `${path}.new` }: WriteFileOptions,
): Promise<void> {
  const file = await open(aside, 'w', mode)
  try {
    // A file that a crash left under this name would keep its old mode.
    await file.chmod(mode)
    await file.writeFile(text)
    if (isDurable) await file.sync()
  } finally {
    await file.close()
  }
  await rename(aside, path)
}
