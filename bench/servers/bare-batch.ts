/**
 * The yardstick of batches: node:http, JSON.parse of the body, and the rows of its jobs, the same as the service writes, in its own
 * schema, by a writer thread in one transaction with synchronous=FULL; no validation, no limits, no keys.
 */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { openSqliteStore } from '../../src/adapters/store/sqlite/open-sqlite-store.ts'
import { listenForParent, readSettings } from '../kit/server-child.ts'

type Row = [id: string, workflow: string]

const DAY_MS = 86_400_000

function runWriter(file: string): void {
  const db = new DatabaseSync(file)
  db.exec('PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL')
  const count = db.prepare(`UPDATE account SET queued = queued + ? WHERE id = 'local'`)
  const insertJob = db.prepare(`
    INSERT INTO job (id, account_id, pool, status, priority, created_at, expires_at, needs_extra_data, input_count, needs, recipe, title)
    VALUES (?, 'local', 'default', 'queued', 0, ?, ?, 0, 0, '', 'bench-recipe-key', 'bench')`)
  const insertWorkflow = db.prepare('INSERT INTO job_workflow (seq, text) VALUES (?, ?)')
  const insertBatch = db.prepare(`
    INSERT INTO job_batch (id, account_id, pool, created_at, expires_at, is_whole, digest, jobs, refused)
    VALUES (?, 'local', 'default', ?, ?, 1, '', ?, '[]')`)
  parentPort?.on('message', (rows: Row[]) => {
    const now = Date.now()
    db.exec('BEGIN IMMEDIATE')
    count.run(rows.length)
    for (const [id, workflow] of rows)
      insertWorkflow.run(insertJob.run(id, now, now + 7 * DAY_MS).lastInsertRowid, workflow)
    insertBatch.run(randomUUID(), now, now + 7 * DAY_MS, JSON.stringify(rows.map(([id]) => id)))
    db.exec('COMMIT')
    parentPort?.postMessage(rows.length)
  })
}

async function serve(): Promise<void> {
  readSettings()
  const directory = mkdtempSync(join(tmpdir(), 'atelier-bench-'))
  const store = await openSqliteStore({ directory })
  await store.accounts.put({ id: 'local', maxRunning: 1, maxQueued: 1 })
  await store[Symbol.asyncDispose]()
  const writer = new Worker(new URL(import.meta.url), { workerData: join(directory, 'atelier.db') })
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', async () => {
      const body = JSON.parse(Buffer.concat(chunks).toString()) as { jobs: { workflow: unknown }[] }
      const rows = body.jobs.map(({ workflow }): Row => [randomUUID(), JSON.stringify(workflow)])
      writer.postMessage(rows)
      await once(writer, 'message')
      const items = rows.map(([id], index) => ({ index, job_id: id, status: 'queued', error: null }))
      const answer = Buffer.from(JSON.stringify({ items }))
      response.writeHead(201, { 'content-type': 'application/json', 'content-length': answer.length })
      response.end(answer)
    })
  })
  listenForParent(server, async () => {
    await writer.terminate()
    rmSync(directory, { recursive: true, force: true })
  })
}

if (isMainThread) await serve()
else runWriter(workerData as string)
