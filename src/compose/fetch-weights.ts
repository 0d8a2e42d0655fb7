/** A file of weights from an address into a folder, with the guards of models of builds: https to public hosts, resumed, checked, its hash remembered. */
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { publicInternet } from '../../lib/outbound/network.ts'
import { openRangeFetcher } from '../adapters/builders/models/fetch-range.ts'
import { ModelStore } from '../adapters/builders/models/model-store.ts'
import type { WeightRules } from '../domain/engine/weights/weight-rules.ts'

interface WeightsWish {
  readonly address: string
  readonly folder: string
  readonly name: string
  /** null: that of the first fetch, which is remembered. */
  readonly sha256: string | null
  /** What is fetched, and what was fetched from where, lies here. */
  readonly directory: string
  /** Origins that may be plain http and lie in a private network. */
  readonly origins: readonly string[]
  /** By the name of a host. */
  readonly headers: ReadonlyMap<string, Readonly<Record<string, string>>>
  readonly rules: WeightRules
  readonly version: string
  say(line: string): void
  onProgress(doneBytes: number, totalBytes: number | null): void
  readonly signal: AbortSignal
}

interface FetchedWeights extends AsyncDisposable {
  /** The whole file, checked; read-only. Disposal removes it, and keeps what was learned about the address. */
  readonly path: string
  readonly sha256: string
  readonly sizeBytes: number
}

const ADVICE = { again: 'run the same command again', header: 'give a header for this host with --headers' }
// More than any file of weights has.
const MAX_BYTES = 1024 ** 4

/** Throws BuildFailure, whose text says what to do. */
export async function fetchWeights(wish: WeightsWish): Promise<FetchedWeights> {
  const { address, folder: type, name: filename, sha256, directory, rules, onProgress, say, signal } = wish
  await mkdir(join(directory, 'locks'), { recursive: true })
  await using fetcher = openRangeFetcher({ ...wish, network: publicInternet, advice: ADVICE })
  const { fetchRange } = fetcher
  const store = new ModelStore(directory, { fetchRange, rules, maxBytes: MAX_BYTES, advice: ADVICE, onProgress })
  const model = { type, filename, sourceUri: address, ...(sha256 !== null && { sha256 }) }
  const found = await store.bring(
    { say, signal, scratch: directory },
    { model, frozen: null, openBlob: () => Promise.reject(new Error('it comes from an address')) },
  )
  const path = store.pathOf(found.sha256)
  return {
    ...{ path, sha256: found.sha256, sizeBytes: found.sizeBytes },
    [Symbol.asyncDispose]: () => rm(path, { force: true }),
  }
}
