/** The yardstick of uploads and downloads: the same hash-and-write pipeline on a raw body, and a plain file sent back. */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream'
import { openBlake3 } from '../../lib/files/blake3.ts'
import { silentLog } from '../../lib/log.ts'
import { openFsBlobs } from '../../src/adapters/blobs/fs/fs-blobs.ts'
import { createMinorGc } from '../../src/compose/process/runtime.ts'
import { listenForParent, readSettings } from '../kit/server-child.ts'

readSettings()
const directory = mkdtempSync(join(tmpdir(), 'atelier-bench-'))
// As the service does, so that what is compared is what the service adds.
const onTransferred = createMinorGc()
const blobs = await openFsBlobs({ directory, blake3: await openBlake3(), log: silentLog, onTransferred })
const server = createServer(async (request, response) => {
  if (request.method === 'POST') {
    const pending = await blobs.receive(request, { maxBytes: Number.MAX_SAFE_INTEGER })
    await pending.keep()
    response.writeHead(201).end(JSON.stringify({ id: pending.hash }))
    return
  }
  const hash = (request.url ?? '').slice(1)
  const size = (await blobs.stat(hash))?.sizeBytes ?? 0
  response.writeHead(200, { 'content-length': size })
  pipeline(await blobs.open(hash), response, () => {})
})
listenForParent(server, async () => {
  rmSync(directory, { recursive: true, force: true })
})
