/**
 * One large file, sent by an unmodified client of the protocol over a line that is cut again and again, to a service that is killed on the
 * way: the asset is the file, the service never falls behind what it has said, and it holds little memory.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { createReadStream, createWriteStream, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import * as tus from 'tus-js-client'
import { openBlake3 } from '../../../lib/files/blake3.ts'
import { spawnServer } from '../../support/app/spawn-server.ts'
import { type FaultProxy, openFaultProxy } from '../../support/network/fault-proxy.ts'

interface UploadKills {
  readonly megabytes: number
  readonly cuts: number
  readonly kills: number
  /** Of the line; left out: as fast as it goes. */
  readonly bytesPerMs?: number
  readonly report?: (line: string) => void
}

interface UploadRun {
  /** The most that one life of the service held above what it held before its first byte. */
  readonly addedBytes: number
  /** The most that the client had sent, and had to send again. */
  readonly lostBytes: number
  readonly seconds: number
}

const MIB = 2 ** 20
const PAGE_BYTES = 4096
const SAMPLE_MS = 50
// A service takes seconds to start on a busy machine. The client counts anew after every byte that got through.
const RETRY_DELAYS = Array.from({ length: 600 }, () => 200)

export async function cutAndKillUpload(options: UploadKills): Promise<UploadRun> {
  const { megabytes, cuts, kills, bytesPerMs, report = () => {} } = options
  const folder = await mkdtemp(join(tmpdir(), 'atelier-uploads-'))
  const path = join(folder, 'large.bin')
  const hash = await writeFile(path, megabytes)
  await using proxy = await openFaultProxy()
  await using service = await openService(join(folder, 'data'), proxy)
  try {
    await send(proxy, { data: Buffer.from('to have done everything once'), name: 'warm.bin' })
    service.measure()
    if (bytesPerMs !== undefined) proxy.set({ kind: 'open', bytesPerMs })
    const plan = toPlan(cuts, kills)
    let [done, sentBytes, offsetBytes, lostBytes] = [0, 0, 0, 0]
    const startedAt = performance.now()
    let isSending = true
    const onProgress = (bytes: number) => {
      if (!isSending) return
      sentBytes = bytes
      // Not before some bytes of this connection are on their way: there must be something to cut.
      const dueBytes = Math.max((megabytes * MIB * (done + 1)) / (plan.length + 1), offsetBytes + MIB / 2)
      if (done === plan.length || bytes < dueBytes) return
      if (plan[done] === 'kill') void service.kill()
      else proxy.drop()
      report(`${plan[done]} at ${Math.round(bytes / MIB)} MiB`)
      done++
      isSending = false
    }
    const onAsked = (offset: number) => {
      assert.ok(offset >= offsetBytes, `the service had ${offsetBytes} bytes and has ${offset}`)
      offsetBytes = offset
      isSending = true
      lostBytes = Math.max(lostBytes, sentBytes - offset)
      report(`  goes on at ${(offset / MIB).toFixed(1)} MiB; ${((sentBytes - offset) / MIB).toFixed(1)} MiB again`)
    }
    const data = createReadStream(path)
    const assetId = await send(proxy, { data, name: 'large.bin', sizeBytes: megabytes * MIB, onProgress, onAsked })
    const seconds = (performance.now() - startedAt) / 1000
    assert.equal(done, plan.length, 'everything that was planned has happened')
    const asset = (await (await fetch(`${addressOf(proxy)}/api/v2/assets/${assetId}`)).json()) as { hash: string }
    assert.equal(asset.hash, `blake3:${hash}`)
    return { addedBytes: service.addedBytes(), lostBytes, seconds }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const addressOf = ({ port }: FaultProxy) => `http://127.0.0.1:${port}`

/** Kills are spread over the whole. */
function toPlan(cuts: number, kills: number): ('cut' | 'kill')[] {
  const plan = Array.from({ length: cuts + kills }, (): 'cut' | 'kill' => 'cut')
  for (let index = 1; index <= kills; index++) plan[Math.floor((plan.length * index) / (kills + 1))] = 'kill'
  return plan
}

interface Sending {
  readonly data: Buffer | ReturnType<typeof createReadStream>
  readonly name: string
  readonly sizeBytes?: number
  onProgress?(bytes: number): void
  onAsked?(offsetBytes: number): void
}

/** Returns the id of the asset. */
function send(proxy: FaultProxy, { data, name, sizeBytes, onProgress, onAsked }: Sending): Promise<string> {
  return new Promise((resolve, reject) => {
    new tus.Upload(data, {
      endpoint: `${addressOf(proxy)}/api/v2/uploads`,
      metadata: { filename: name },
      retryDelays: RETRY_DELAYS,
      ...(sizeBytes !== undefined && { uploadSize: sizeBytes }),
      onProgress: (bytes) => onProgress?.(bytes),
      onAfterResponse(request, response) {
        const offset = response.getHeader('Upload-Offset')
        if (request.getMethod() === 'HEAD' && offset !== undefined) onAsked?.(Number(offset))
      },
      onError: reject,
      onSuccess: ({ lastResponse }) => resolve(lastResponse.getHeader('Upload-Asset') ?? ''),
    }).start()
  })
}

/** A service behind the proxy that comes back after each kill, and what it holds. */
async function openService(dataDir: string, proxy: FaultProxy) {
  const start = () => spawnServer(['--data-dir', dataDir, '--max-upload', '64gib'])
  let server = await start()
  let killing: Promise<void> | null = null
  let idleBytes = Number.POSITIVE_INFINITY
  let addedBytes = 0
  const aim = () => proxy.aim(Number(new URL(server.url).port))
  aim()
  const sampler = setInterval(() => {
    if (killing === null) addedBytes = Math.max(addedBytes, residentBytes(server.pid) - idleBytes)
  }, SAMPLE_MS)

  async function kill(): Promise<void> {
    proxy.aim(null)
    await server.killNow()
    server = await start()
    aim()
  }

  return {
    kill() {
      killing ??= kill().finally(() => {
        killing = null
      })
      return killing
    },
    /** What is held now is what an idle service holds. */
    measure() {
      idleBytes = residentBytes(server.pid)
    },
    addedBytes: () => addedBytes,
    async [Symbol.asyncDispose]() {
      clearInterval(sampler)
      await killing
      await server.killNow()
    },
  }
}

/** 0 where the system does not tell. */
function residentBytes(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES
  } catch {
    return 0
  }
}

async function writeFile(path: string, megabytes: number): Promise<string> {
  const hasher = (await openBlake3()).createHasher()
  const chunk = randomBytes(MIB)
  async function* chunks() {
    for (let index = 0; index < megabytes; index++) {
      chunk.writeUInt32LE(index, 0)
      hasher.update(chunk)
      yield Buffer.from(chunk)
    }
  }
  await pipeline(chunks, createWriteStream(path))
  return hasher.digest()
}
