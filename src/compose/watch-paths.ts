/** Calls back, a moment after the last change, whenever something in a folder or one file has changed. */
import { watch } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { Log } from '../lib/log.ts'

// An editor writes a file in several steps, and a deployment writes many files.
const SETTLE_MS = 300

export interface WatchOptions {
  readonly onChanged: () => void
  readonly log: Log
}

/** Everything below the folder. */
export function watchFolder(folder: string, options: WatchOptions): Disposable {
  return startWatch(folder, { ...options, isRecursive: true, isMeant: () => true })
}

/** Editors put a new file in the place of the old one, so its folder is looked at. */
export function watchFile(file: string, options: WatchOptions): Disposable {
  const name = basename(file)
  return startWatch(dirname(file), { ...options, isRecursive: false, isMeant: (changed) => changed === name })
}

interface StartOptions extends WatchOptions {
  readonly isRecursive: boolean
  readonly isMeant: (name: string | null) => boolean
}

function startWatch(folder: string, { onChanged, log, isRecursive, isMeant }: StartOptions): Disposable {
  let timer: NodeJS.Timeout | null = null
  const run = () => {
    timer = null
    onChanged()
  }
  const watcher = watch(folder, { recursive: isRecursive }, (_event, name) => {
    if (!isMeant(name)) return
    if (timer === null) timer = setTimeout(run, SETTLE_MS)
    else timer.refresh()
  })
  watcher.on('error', (error) => log.warn({ err: error, folder }, 'a folder cannot be watched any more'))
  return {
    [Symbol.dispose]() {
      if (timer !== null) clearTimeout(timer)
      watcher.close()
    },
  }
}
