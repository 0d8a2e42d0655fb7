/**
 * Copies a file, or bytes, to a name that must be free. The copy is made under another name in the same folder and gets its own only
 * when it is whole and durable; what a crash leaves of it is removed by the next copy into that folder.
 */
import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { chmod, copyFile, link, open, readdir, unlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

const { COPYFILE_EXCL, COPYFILE_FICLONE } = constants
const UNFINISHED = /^\.atelier-[0-9a-f-]{36}\.partial$/

/** Fails with EEXIST when the name is taken, and then leaves nothing behind. */
type ExclusiveCopy = (from: string | AsyncIterable<Uint8Array>, to: string) => Promise<void>

export function createExclusiveCopy({ mode }: { readonly mode: number }): ExclusiveCopy {
  const underWay = new Set<string>()

  async function removeLeftOvers(folder: string): Promise<void> {
    for (const name of await readdir(folder)) {
      const path = join(folder, name)
      if (UNFINISHED.test(name) && !underWay.has(path)) await unlink(path)
    }
  }

  return async function copyExclusively(from, to) {
    const folder = dirname(to)
    await removeLeftOvers(folder)
    const unfinished = join(folder, `.atelier-${randomUUID()}.partial`)
    underWay.add(unfinished)
    try {
      if (typeof from === 'string') {
        // Shares the blocks where the file system can.
        await copyFile(from, unfinished, COPYFILE_EXCL | COPYFILE_FICLONE)
      } else await writeFile(unfinished, from, { flag: 'wx' })
      await chmod(unfinished, mode)
      await sync(unfinished)
      // Unlike a rename, a link never replaces a file.
      await link(unfinished, to)
    } finally {
      await unlink(unfinished).catch(() => {})
      underWay.delete(unfinished)
    }
  }
}

async function sync(path: string): Promise<void> {
  await using file = await open(path, 'r')
  await file.datasync()
}
