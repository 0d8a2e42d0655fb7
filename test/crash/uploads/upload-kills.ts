/**
 * One large file, sent by an unmodified client of the protocol over a line that is cut again and again, to a service that is killed on the
 * way: the asset is the file, the service never falls behind what it has said, and it holds little memory.
 */
import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { openBlake3 } from '../../../lib/files/blake3.ts'
import { spawnServer } from '../../support/app/spawn-server.ts'
import { type FaultProxy, openFaultProxy } from '../../support/network/fault-proxy.ts'
import type { SenderNews } from './tus-sender.ts'

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
const PATH = '/api/v2/uploads'

export async function cutAndKillUpload(options: UploadKills): Promise<UploadRun> {
  const { megabytes, cuts, kills, bytesPerMs, report = () => {} } = options
  const folder = await mkdtemp(join(tmpdir(), 'atelier-uploads-'))
  const path = join(folder, 'large.bin')
  const hash = await writeFile(path, megabytes)
  await using proxy = await openFaultProxy()
  await using service = await openService(join(folder, 'data'), proxy)
  try {
    await warmUp(proxy)
    service.measure()
    if (bytesPerMs !== undefined) proxy.set({ kind: 'open', bytesPerMs })
    const plan = toPlan(cuts, kills)
    let [done, sentBytes, offsetBytes, lostBytes] = [0, 0, 0, 0]
    const startedAt = performance.now()
    let isSending = true
    const onSent = (bytes: number) => {
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
    const assetId = await send(path, proxy, { onSent, onAsked })
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

interface SenderEars {
  onSent(bytes: number): void
  onAsked(offsetBytes: number): void
}

const SENDER = new URL('./tus-sender.ts', import.meta.url)

/** Returns the id of the asset. The sender ends with it, whatever it still had to do. */
async function send(path: string, proxy: FaultProxy, { onSent, onAsked }: SenderEars): Promise<string> {
  const child = fork(SENDER, [path, `${addressOf(proxy)}${PATH}`])
  const exited = once(child, 'exit')
  try {
    return await new Promise<string>((resolve, reject) => {
      exited.then(() => reject(new Error('the sender ended early')), reject)
      child.on('message', (news: SenderNews) => {
        if (news.kind === 'sent') onSent(news.bytes)
        else if (news.kind === 'asked') onAsked(news.bytes)
        else if (news.kind === 'done') resolve(news.assetId)
        else reject(new Error(news.message))
      })
    })
  } finally {
    child.kill('SIGKILL')
    await exited
  }
}

/** What a service loads with the first upload belongs to an idle one. */
async function warmUp(proxy: FaultProxy): Promise<void> {
  const about = { 'Upload-Length': '4', 'Upload-Metadata': 'filename d2FybQ==' }
  const headers = { 'Tus-Resumable': '1.0.0', 'Content-Type': 'application/offset+octet-stream', ...about }
  const answer = await fetch(`${addressOf(proxy)}${PATH}`, { method: 'POST', headers, body: 'warm' })
  assert.equal(answer.status, 201, await answer.text())
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
