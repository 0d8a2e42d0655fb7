import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { createCommandHook } from '../../../src/adapters/hooks/pool-event-hooks.ts'

const EVENT = { event: 'workers_wanted', pool: 'demo', queued: 2, running: 0, signal: null, at: new Date(0) } as const
const BODY = '{"event":"workers_wanted","pool":"demo","queued":2,"running":0,"at":"1970-01-01T00:00:00.000Z"}'
const never = new AbortController().signal

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
