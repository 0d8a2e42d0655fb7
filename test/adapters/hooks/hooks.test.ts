import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { createCommandHook, createWebhook } from '../../../src/adapters/hooks/pool-event-hooks.ts'

const EVENT = { event: 'workers_wanted', pool: 'demo', queued: 2, running: 0, signal: null, at: new Date(0) } as const
const BODY = '{"event":"workers_wanted","pool":"demo","queued":2,"running":0,"at":"1970-01-01T00:00:00.000Z"}'
const never = new AbortController().signal

describe('a webhook', () => {
  test('gets the event as JSON, and an answer outside 2xx or a redirect counts as not taken', async () => {
    const bodies: string[] = []
    const server = createServer(async (request, response) => {
      let body = ''
      for await (const chunk of request) body += chunk
      bodies.push(`${request.method} ${request.headers['content-type']} ${body}`)
      const status = Number(request.url?.slice(1))
      response.writeHead(status, status === 302 ? { location: '/200' } : {}).end()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const at = (status: number) => createWebhook(`http://127.0.0.1:${(server.address() as AddressInfo).port}/${status}`)
    await at(204)(EVENT, never)
    assert.deepEqual(bodies, [`POST application/json ${BODY}`])
    const figures = { workers: 0, wantedWorkers: 2, oldestWaitMs: 1500 }
    await at(204)({ ...EVENT, signal: { pool: 'demo', queued: 2, running: 0, ...figures } }, never)
    assert.match(bodies[1], /,"workers":0,"wanted_workers":2,"oldest_wait_seconds":1.5}$/)
    await assert.rejects(at(500)(EVENT, never), /answered 500/)
    await assert.rejects(at(302)(EVENT, never))
    await assert.rejects(at(200)(EVENT, AbortSignal.abort()))
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
})

describe('a command', () => {
  let folder: string
  before(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'atelier-hook-'))
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  function program(text: string): string {
    const file = path.join(folder, `hook-${Math.random().toString(36).slice(2)}`)
    writeFileSync(file, `#!/bin/sh\n${text}\n`)
    chmodSync(file, 0o700)
    return file
  }

  test('gets the event on its input and as arguments, and nothing of our environment', async () => {
    const seen = path.join(folder, 'seen')
    await createCommandHook(program(`cat > ${seen}; echo "$1 $2 [$ATELIER_ADMIN_TOKEN$HOME]" >> ${seen}`))(EVENT, never)
    assert.equal(readFileSync(seen, 'utf8'), `${BODY}workers_wanted demo []\n`)
  })

  test('has not taken it when it ends with another code, or is not there, or takes too long', async () => {
    await assert.rejects(createCommandHook(program('exit 3'))(EVENT, never), /ended with 3/)
    await assert.rejects(createCommandHook(path.join(folder, 'nowhere'))(EVENT, never), /ENOENT/)
    const cut = new AbortController()
    const call = createCommandHook(program('exec sleep 60'))(EVENT, cut.signal)
    cut.abort()
    await assert.rejects(call)
  })
})
