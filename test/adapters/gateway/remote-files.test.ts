import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { openBlake3 } from '../../../lib/files/blake3.ts'
import type { GatewayCall } from '../../../src/adapters/gateway/gateway-client.ts'
import { HeldJobs } from '../../../src/adapters/gateway/held-jobs.ts'
import { createRemoteFiles } from '../../../src/adapters/gateway/remote-files.ts'
import { storeUnavailable } from '../../../src/domain/errors.ts'

const blake3 = await openBlake3()
const MIB = 1024 * 1024
const LEASE = { jobId: 'job', leaseId: 'lease' }

/** Keeps what was put; `broken` are the numbers of puts whose answer is lost. */
function openService({ broken = [] as number[], known = [] as string[] } = {}) {
  const stored = new Map<string, Uint8Array>()
  const puts: number[] = []
  let joined: Buffer | null = null
  const call = async <Answer>({ method, path, bytes, json }: GatewayCall): Promise<Answer | null> => {
    if (method === 'PUT' && bytes !== undefined) {
      puts.push(bytes.length)
      if (broken.includes(puts.length)) throw storeUnavailable(new Error('cut'))
      const hash = path.split('/')[4]!.split('?')[0]!
      stored.set(hash, Uint8Array.from(bytes))
      return { hash, size_bytes: bytes.length, receipt: `of ${hash}` } as Answer
    }
    const { hash, pieces } = json as { hash: string; pieces?: { hash: string; receipt: string }[] }
    if (pieces === undefined) {
      return (known.includes(hash) ? { state: 'stored', receipt: 'known' } : { state: 'wanted' }) as Answer
    }
    assert.ok(pieces.every((piece) => piece.receipt === `of ${piece.hash}`))
    joined = Buffer.concat(pieces.map((piece) => stored.get(piece.hash)!))
    assert.equal(blake3.hash(joined), hash)
    return { state: 'stored', receipt: 'joined' } as Answer
  }
  return { client: { call, open: () => Promise.reject(new Error('not asked')) }, puts, stored, joined: () => joined }
}

async function* chunksOf(bytes: Buffer): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += MIB) yield bytes.subarray(start, start + MIB)
}

describe('outputs on their way to a service that was joined', () => {
  let directory = ''
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'atelier-remote-files-'))
  })
  after(() => rm(directory, { recursive: true, force: true }))

  const open = (client: ReturnType<typeof openService>['client']) =>
    createRemoteFiles({ client, held: new HeldJobs(), blake3, directory, maxPieceBytes: 64 * MIB })

  test('a large one goes in pieces, and a piece whose answer was lost is the only one that is sent again', async () => {
    const bytes = Buffer.alloc(20 * MIB + 5, 'a large output ')
    const service = openService({ broken: [2] })
    const { storeOutput } = open(service.client)
    const stored = await storeOutput(chunksOf(bytes), { lease: LEASE, maxBytes: bytes.length })
    assert.deepEqual(stored, { hash: blake3.hash(bytes), sizeBytes: bytes.length })
    assert.deepEqual(service.puts, [8 * MIB, 8 * MIB, 8 * MIB, 4 * MIB + 5])
    assert.ok(service.joined()?.equals(bytes))
    assert.deepEqual(await readdir(directory), [])
  })

  test('one that the account has already is not sent at all', async () => {
    const bytes = Buffer.from('known')
    const service = openService({ known: [blake3.hash(bytes)] })
    const { storeOutput } = open(service.client)
    await storeOutput(chunksOf(bytes), { lease: LEASE, maxBytes: 100 })
    assert.deepEqual(service.puts, [])
  })

  test('one that is larger than it may be is refused before anything is sent, and leaves nothing behind', async () => {
    const service = openService()
    const { storeOutput } = open(service.client)
    const storing = storeOutput(chunksOf(Buffer.alloc(9 * MIB)), { lease: LEASE, maxBytes: 9 * MIB - 1 })
    await assert.rejects(storing, { refusal: 'payload_too_large' })
    assert.deepEqual([service.puts, await readdir(directory)], [[], []])
  })
})
