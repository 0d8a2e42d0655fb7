/** A joined worker by hand: one request after the other, as a program that somebody else wrote would send them. */
import { randomUUID } from 'node:crypto'
import type { ObjectInfo } from '../../../engine/graph/object-info.ts'
import { writeCatalog } from '../../../src/domain/engine/directory/catalog-text.ts'
import { fakeCatalog } from '../engines/fake-catalog.ts'
import { type Answer, call } from './call.ts'

export interface HeldLease {
  readonly jobId: string
  readonly leaseId: string
}

/** The classes of the fake engine. */
export const INFO: ObjectInfo = Object.fromEntries(
  fakeCatalog.classTypes().map((name) => [name, fakeCatalog.find(name)!]),
)

export class WorkerClient {
  readonly instanceId = randomUUID()
  readonly url: string
  readonly key: string

  constructor(url: string, key: string) {
    this.url = url
    this.key = key
  }

  headers(version = '1'): Record<string, string> {
    return {
      authorization: `Bearer ${this.key}`,
      'atelier-worker-version': version,
      'atelier-worker-instance': this.instanceId,
    }
  }

  ask(method: string, path: string, body?: object | Uint8Array): Promise<Answer> {
    const sent = body === undefined || body instanceof Uint8Array ? body : JSON.stringify(body)
    return call(this.url, `/worker/v1${path}`, { method, headers: this.headers(), ...(sent && { body: sent }) })
  }

  /** Publishes one engine with the classes of the fake engine. */
  async publish(name = 'gpu', fields: object = {}): Promise<Answer> {
    return this.publishClasses(INFO, [name], fields)
  }

  /** Publishes engines with classes of their own; those of the fake engine are in `INFO`. */
  async publishClasses(info: ObjectInfo, names: readonly string[] = ['gpu'], fields: object = {}): Promise<Answer> {
    const { hash, text } = writeCatalog(info, null)
    const put = await this.ask('PUT', `/catalogs/${hash}`, Buffer.from(text))
    if (put.status !== 204) return put
    const toEngine = (name: string) => ({
      ...{ name, is_shared: false, catalog_hash: hash, state: 'ready', reason: null, is_supervised: false },
      ...{ concurrency: 1, running: 0, node_classes: 1, weights: 0, loaded_weights: [], version: null, reconnects: 0 },
      ...{ memory_bytes: null, started_at: null, last_error: null, ...fields },
      counts: { jobs: 0, failures: 0, losses: 0, switches: 0, recycles: 0 },
    })
    return this.ask('PUT', '/engines', { engines: names.map(toEngine) })
  }

  claim(fields: object = {}): Promise<Answer> {
    const engines = [{ name: 'gpu', loaded_weights: [], broke_latest_run: false }]
    return this.ask('POST', '/claims', { pool: 'default', lease_id: randomUUID(), wait_ms: 0, engines, ...fields })
  }

  /** Takes the next job. */
  async take(): Promise<HeldLease> {
    const leaseId = randomUUID()
    const answer = await this.claim({ lease_id: leaseId, wait_ms: 10_000 })
    if (answer.status !== 200) throw new Error(`no job was given: ${answer.status} ${answer.text}`)
    return { jobId: answer.json.job.id, leaseId }
  }

  finish({ jobId, leaseId }: HeldLease, outputs: readonly object[] = []): Promise<Answer> {
    const finish = { status: 'succeeded', from: ['running'], error: null, record: null }
    return this.ask('POST', `/jobs/${jobId}/commits`, { lease_id: leaseId, change: { outputs, finish } })
  }
}
