/**
 * The yardstick of durable submits: node:http, JSON.parse of the body, and one row inserted by a writer thread that commits
 * in groups with synchronous=FULL, just as the store does; no validation, no counters, no queue.
 */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { listenForParent, readSettings } from '../kit/server-child.ts'

type Row = [id: string, workflow: string]

function runWriter(file: string): void {
  const db = new DatabaseSync(file)
  db.exec(
    'PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE jobs (seq INTEGER PRIMARY KEY, id TEXT UNIQUE, workflow TEXT)',
  )
  const insert = db.prepare('INSERT INTO jobs (id, workflow) VALUES (?, ?)')
  parentPort?.on('message', (rows: Row[]) => {
    db.exec('BEGIN IMMEDIATE')
    for (const row of rows) insert.run(row[0], row[1])
    db.exec('COMMIT')
    parentPort?.postMessage(rows.length)
  })
}

function createInsert(writer: Worker): (row: Row) => Promise<void> {
  let waiting: { row: Row; done: () => void }[] = []
  let inFlight: { row: Row; done: () => void }[] | null = null
  const send = () => {
    inFlight = waiting
    waiting = []
    writer.postMessage(inFlight.map((entry) => entry.row))
  }
  writer.on('message', () => {
    const finished = inFlight ?? []
    inFlight = null
    for (const entry of finished) entry.done()
    if (waiting.length > 0) send()
  })
  return (row) =>
    new Promise<void>((done) => {
      waiting.push({ row, done })
      if (inFlight === null && waiting.length === 1) setImmediate(send)
    })
}

function serve(): void {
  readSettings()
  const directory = mkdtempSync(join(tmpdir(), 'atelier-bench-'))
  const writer = new Worker(new URL(import.meta.url), { workerData: join(directory, 'bare.db') })
  const insert = createInsert(writer)
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', async () => {
      const body = JSON.parse(Buffer.concat(chunks).toString()) as { workflow: unknown }
      const id = randomUUID()
      await insert([id, JSON.stringify(body.workflow)])
      const answer = Buffer.from(JSON.stringify({ id, status: 'queued' }))
      response.writeHead(201, { 'content-type': 'application/json', 'content-length': answer.length })
      response.end(answer)
    })
  })
  listenForParent(server, async () => {
    await writer.terminate()
    rmSync(directory, { recursive: true, force: true })
  })
}

if (isMainThread) serve()
else runWriter(workerData as string)
