/**
 * A worker with a valid key that sends anything: right requests, wrong ones, and right ones with a part exchanged. Whatever it sends,
 * it is answered with 2xx or a refusal in the envelope, and jobs, ledger and events stay as the table of moves allows. Each run is
 * drawn from a seed, which a failure names.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { openBlake3 } from '../../../lib/files/blake3.ts'
import { canMove, isTerminal, JOB_STATUSES, type JobStatus } from '../../../src/domain/jobs/transitions.ts'
import { type SharedApp, startShared, type Tenant } from '../../support/app/start-shared.ts'
import type { Answer } from '../../support/clients/call.ts'
import { openEvents } from '../../support/clients/event-reader.ts'
import { type HeldLease, WorkerClient } from '../../support/clients/worker-client.ts'
import { drawnCases } from '../../support/drawn-cases.ts'
import { type SeededRandom, seededRandom } from '../../support/seeded-random.ts'

const STEPS = drawnCases(200)
const blake3 = await openBlake3()
const PRICES = JSON.stringify({ pools: { '*': { perSecondMicros: 1000, minimumMicros: 500, holdMicros: 2000 } } })
const WORKFLOW = { '1': { class_type: 'FakeSave', inputs: { text: 'x' } } }
const ODD: readonly unknown[] = [
  ...[null, true, -1, 0, 1.5, 1e308, 2 ** 53, '', 'x', '\u0000', '\ud800', '../..', 'x'.repeat(5000), [], {}],
  ...[[null], { __proto__: null, a: [] }, ['queued'], 'expired', '2026-01-01', randomUUID(), [[[[]]]]],
]

/** Every status that may be seen after this one. */
const AFTER = new Map(JOB_STATUSES.map((status) => [status, reachableFrom(status)]))

function reachableFrom(status: JobStatus, seen = new Set<JobStatus>([status])): ReadonlySet<JobStatus> {
  for (const next of JOB_STATUSES) if (canMove(status, next) && !seen.has(next)) reachableFrom(next, seen.add(next))
  return seen
}

/** The same with one part exchanged, left out or added. */
function mutate(value: unknown, random: SeededRandom): unknown {
  if (typeof value !== 'object' || value === null || random.next() < 0.15) return random.pick(ODD)
  if (Array.isArray(value)) {
    if (value.length === 0 || random.next() < 0.2) return [...value, random.pick(ODD)]
    const at = random.between(0, value.length)
    return value.map((item, index) => (index === at ? mutate(item, random) : item))
  }
  const names = Object.keys(value)
  const name = names.length === 0 || random.next() < 0.1 ? 'surprise' : random.pick(names)
  const { [name]: found, ...rest } = value as Record<string, unknown>
  return random.next() < 0.2 ? rest : { ...rest, [name]: mutate(found, random) }
}

class Fuzzer {
  readonly jobs = new Map<string, { status: JobStatus; ended: string | null }>()
  readonly canceled = new Set<string>()
  readonly leases: HeldLease[] = []
  readonly receipts: { readonly lease: HeldLease; readonly bytes: Buffer; readonly receipt: string }[] = []
  readonly statuses = new Map<number, number>()
  readonly app: SharedApp
  readonly tenant: Tenant
  readonly worker: WorkerClient
  readonly random: SeededRandom

  constructor(app: SharedApp, tenant: Tenant, worker: WorkerClient, random: SeededRandom) {
    this.app = app
    this.tenant = tenant
    this.worker = worker
    this.random = random
  }

  async ask(method: string, path: string, body?: object | Uint8Array): Promise<Answer> {
    const { random } = this
    const isWrong = body !== undefined && !(body instanceof Uint8Array) && random.next() < 0.25
    const sent = isWrong ? Buffer.from(JSON.stringify(mutate(body, random)) ?? 'undefined') : body
    const answer = await this.worker.ask(method, path, sent)
    const where = `${method} ${path} ${sent instanceof Buffer ? sent.toString().slice(0, 2000) : JSON.stringify(sent)}`
    this.statuses.set(answer.status, (this.statuses.get(answer.status) ?? 0) + 1)
    assert.ok(answer.status < 500, `${where} -> ${answer.status} ${answer.text}`)
    if (answer.status >= 400) {
      const { type, message, request_id: requestId } = answer.json?.error ?? {}
      assert.deepEqual([typeof type, typeof message, typeof requestId], ['string', 'string', 'string'], where)
    }
    return answer
  }

  aLease(): HeldLease {
    const { random, leases } = this
    const lease = leases.length === 0 || random.next() < 0.05 ? { jobId: randomUUID(), leaseId: randomUUID() } : null
    if (lease !== null) return lease
    // Mostly one of the newest, which may still be held.
    const recent = random.next() < 0.8 ? leases.slice(-4) : leases
    const { jobId, leaseId } = random.pick(recent)
    return { jobId: random.next() < 0.05 ? random.pick(leases).jobId : jobId, leaseId }
  }

  readonly steps: readonly (() => Promise<unknown>)[] = [
    () => this.submit(),
    () => this.submit(),
    () => this.cancel(),
    () => this.claim(),
    () => this.claim(),
    () => this.claim(),
    () => this.commit(),
    () => this.commit(),
    () => this.commit(),
    () => this.put(),
    () => this.ask('POST', '/leases', { leases: [named(this.aLease()), named(this.aLease())] }),
    () => this.ask('POST', '/release', { leases: [{ ...named(this.aLease()), is_spent: this.random.next() < 0.3 }] }),
    () => this.models(),
    () => this.numbers(),
    () => this.offer(),
    () => this.ask('POST', '/beats', { version: '1', host: 'h', live_node: null, workers: { default: 1 } }),
    () => this.ask('PUT', `/catalogs/${'0'.repeat(64)}`, Buffer.from(JSON.stringify(mutate({ a: {} }, this.random)))),
  ]

  async submit(): Promise<void> {
    const answer = await this.tenant.call('/api/v2/jobs', {
      method: 'POST',
      body: JSON.stringify({ workflow: WORKFLOW }),
    })
    assert.equal(answer.status, 201, answer.text)
    this.jobs.set(answer.json.id, { status: 'queued', ended: null })
  }

  async cancel(): Promise<void> {
    const ids = [...this.jobs.keys()]
    if (ids.length === 0 || this.random.next() < 0.6) return
    const id = this.random.pick(ids.slice(-6))
    this.canceled.add(id)
    const answer = await this.tenant.call(`/api/v2/jobs/${id}/cancel`, { method: 'POST' })
    assert.ok(answer.status < 500, answer.text)
  }

  async claim(): Promise<void> {
    const leaseId = this.random.next() < 0.1 ? this.aLease().leaseId : randomUUID()
    const engines = [{ name: 'gpu', loaded_weights: [], broke_latest_run: this.random.next() < 0.1 }]
    const body = { pool: 'default', lease_id: leaseId, wait_ms: 0, engines }
    const answer = await this.ask('POST', '/claims', body)
    if (answer.status === 200) this.leases.push({ jobId: answer.json.job.id, leaseId })
  }

  async put(): Promise<void> {
    const { random } = this
    const lease = this.aLease()
    const bytes = Buffer.from(`bytes ${random.between(0, 5)}`)
    const hash = random.next() < 0.1 ? 'f'.repeat(64) : blake3.hash(bytes)
    const answer = await this.ask('PUT', `/jobs/${lease.jobId}/blobs/${hash}?lease_id=${lease.leaseId}`, bytes)
    if (answer.status === 200) this.receipts.push({ lease, bytes, receipt: answer.json.receipt })
  }

  offer(): Promise<Answer> {
    const { jobId, leaseId } = this.aLease()
    const piece = this.receipts.at(-1)
    const bytes = piece?.bytes ?? Buffer.from('none')
    const whole = { lease_id: leaseId, hash: blake3.hash(bytes), size_bytes: bytes.length }
    const pieces = [{ hash: whole.hash, size_bytes: bytes.length, receipt: piece?.receipt ?? 'none' }]
    return this.ask('POST', `/jobs/${jobId}/blobs`, this.random.next() < 0.5 ? whole : { ...whole, pieces })
  }

  numbers(): Promise<Answer> {
    const { jobId, leaseId } = this.aLease()
    return this.ask('POST', `/jobs/${jobId}/numbers`, { lease_id: leaseId, folder: '', prefix: 'x', count: 3 })
  }

  models(): Promise<Answer> {
    const { jobId, leaseId } = this.aLease()
    const body = { lease_id: leaseId, model: 'a/b', input: '{}', images: [], key: '1.0' }
    return this.ask('POST', `/jobs/${jobId}/models`, body)
  }

  commit(): Promise<Answer> {
    const { random } = this
    const lease = this.aLease()
    const some = <Value>(likely: number, make: () => Value) => (random.next() < likely ? make() : undefined)
    const change = {
      progress: some(0.4, () => ({
        ...{ value: random.next(), nodes_done: random.between(0, 3), nodes_total: random.between(0, 3) },
        ...{ current_node: '1', current_node_class: 'FakeSave', step: random.between(0, 4), steps: 3, message: null },
      })),
      outputs: some(0.4, () => this.outputs(lease)),
      outputs_reused: some(0.1, () => random.next() < 0.5),
      log: some(0.2, () => ({ text: 'a line\n', truncated: false, complete: random.next() < 0.5 })),
      finish: some(0.5, () => this.finish()),
    }
    return this.ask('POST', `/jobs/${lease.jobId}/commits`, { lease_id: lease.leaseId, change })
  }

  outputs(lease: HeldLease): object[] {
    const own = this.receipts.filter(({ lease: { leaseId } }) => leaseId === lease.leaseId)
    const made = this.random.next() < 0.8 ? own : this.receipts
    return made.slice(-2).map(({ bytes, receipt }) => ({
      ...{ asset_id: randomUUID(), node_id: '1', name: 'a.txt', type: 'text', content_type: 'text/plain' },
      ...{ size_bytes: bytes.length, hash: blake3.hash(bytes), receipt },
    }))
  }

  finish(): object {
    const { random } = this
    const error = { code: 'broken', message: 'it broke', node_id: null, class_type: null, traceback: null }
    const record = {
      ...{ started_at_ms: 1, ended_at_ms: 2, cached: { node_ids: [], at_ms: 1 }, nodes: [], executed: ['1'] },
      ...{ stopped_at: null, failure: null },
    }
    const status = random.pick(['succeeded', 'failed', 'canceled'])
    const isRight = random.next() < 0.6
    return {
      status,
      from: random.pick([['running'], ['canceling'], ['running', 'canceling']]),
      error: (isRight ? status !== 'failed' : random.next() < 0.5) ? null : error,
      record: random.next() < 0.5 ? null : record,
    }
  }

  async checkJob(id: string): Promise<void> {
    const known = this.jobs.get(id)
    assert.ok(known !== undefined)
    const answer = await this.tenant.call(`/api/v2/jobs/${id}`)
    assert.equal(answer.status, 200, answer.text)
    const { status, error, progress, outputs, completed_at: completedAt } = answer.json
    const where = `${known.status} -> ${answer.text}`
    assert.ok(AFTER.get(known.status)?.has(status), where)
    assert.equal(status === 'failed', error !== null, where)
    if (status === 'canceled') assert.ok(this.canceled.has(id), `nobody canceled it: ${where}`)
    assert.equal(completedAt !== null, isTerminal(status), where)
    if (progress !== null) {
      assert.ok(progress.value >= 0 && progress.value <= 1 && progress.nodes_done <= progress.nodes_total, where)
      assert.ok(
        [progress.step, progress.steps].every((each) => each === null || Number.isInteger(each)),
        where,
      )
    }
    for (const output of outputs as { id: string; size_bytes: number }[]) {
      const bytes = await fetch(
        (answer.json.outputs as { id: string; url: string }[]).find(({ id: of }) => of === output.id)?.url ?? '',
      )
      assert.deepEqual([bytes.status, (await bytes.arrayBuffer()).byteLength], [200, output.size_bytes], where)
    }
    const ended = isTerminal(status)
      ? JSON.stringify([status, error, completedAt, outputs.map((of: { id: string }) => of.id)])
      : null
    if (known.ended !== null) assert.equal(ended, known.ended, 'what has ended stays as it is')
    this.jobs.set(id, { status, ended })
  }

  /** Brings everything to an end, and looks at what the account was charged. */
  async settle(): Promise<void> {
    for (const lease of this.leases) await this.worker.ask('POST', '/release', { leases: [named(lease)] })
    for (const id of this.jobs.keys()) {
      this.canceled.add(id)
      await this.tenant.call(`/api/v2/jobs/${id}/cancel`, { method: 'POST' })
    }
    for (const id of this.jobs.keys()) {
      await this.checkJob(id)
      assert.ok(isTerminal(this.jobs.get(id)?.status ?? 'queued'), `${id} is ${this.jobs.get(id)?.status}`)
      using events = openEvents(this.app.url, `/api/v2/jobs/${id}/events`, {
        authorization: `Bearer ${this.tenant.key}`,
      })
      const told = (await events.rest()).filter(({ event }) => event === 'status')
      assert.deepEqual(
        told.map(({ data }) => data.status),
        [this.jobs.get(id)?.status],
      )
    }
    const report = (await this.app.admin('GET', '/ledger/check')).json
    assert.deepEqual([report.open_holds, report.faults], [0, []])
    const { use, balance } = (await this.app.admin('GET', `/accounts/${this.tenant.id}`)).json
    assert.deepEqual([use.running, use.queued, balance.held_micros], [0, 0, 0])
    const { entries } = (await this.app.admin('GET', `/accounts/${this.tenant.id}/entries?limit=1000`)).json
    const settled = (entries as { kind: string; reference: string }[]).filter(({ kind }) => kind === 'settle')
    assert.equal(new Set(settled.map(({ reference }) => reference)).size, settled.length, 'no job is charged twice')
  }
}

function named({ jobId, leaseId }: HeldLease) {
  return { job_id: jobId, lease_id: leaseId }
}

const reached = new Set<JobStatus | number>()

for (const seed of [11, 12]) {
  test(`whatever a worker sends (seed ${seed}), every answer is 2xx or a clean refusal, and jobs and ledger stay right`, async () => {
    await using app = await startShared({ joins: 'on', prices: PRICES }, { overrides: { engines: [] } })
    const tenant = await app.account('tenant', {
      concurrentJobs: 50,
      queuedJobs: 500,
      requestsPerMinute: null,
      creditFloorMicros: 0,
    })
    assert.equal(
      (await app.admin('POST', '/accounts/tenant/grants', { micros: 10_000_000, memo: 'a gift' })).status,
      201,
    )
    const made = await app.admin('POST', '/workers/keys', { pools: ['default'] })
    const worker = new WorkerClient(app.url, made.json.text)
    assert.equal((await worker.publish()).status, 200)
    const fuzzer = new Fuzzer(app, tenant, worker, seededRandom(seed))
    for (let step = 0; step < STEPS; step++) {
      await fuzzer.random.pick(fuzzer.steps)()
      const id = [...fuzzer.jobs.keys()].at(-1 - fuzzer.random.between(0, 5))
      if (id !== undefined) await fuzzer.checkJob(id)
    }
    await fuzzer.settle()
    for (const { status } of fuzzer.jobs.values()) reached.add(status)
    for (const status of fuzzer.statuses.keys()) reached.add(status)
  })
}

test('the draws reach jobs that ended in each way, and refusals', () => {
  for (const each of ['succeeded', 'failed', 'canceled', 200, 404, 422] as const)
    assert.ok(reached.has(each), `never ${each}`)
})
