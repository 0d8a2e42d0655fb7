/** Where the bytes of a trial lie: a folder that all nodes share, or a bucket that each of them reaches over a link of its own. */
import { join } from 'node:path'
import { type FaultProxy, openFaultProxy } from '../../support/network/fault-proxy.ts'
import { type FakeS3, startFakeS3 } from '../../support/s3/fake-s3.ts'

export type BytesPlace = 'files' | 'bucket'

export interface ChaosStorage extends AsyncDisposable {
  /** null: a folder. */
  readonly bucket: FakeS3 | null
  /** The folder that nodes share; unused with a bucket. */
  readonly folder: string
  /** Flags and environment of a node, which reaches the bucket over `link`. */
  settingsFor(
    node: string,
    link: FaultProxy,
  ): { readonly flags: readonly string[]; readonly env: Record<string, string> }
  /** Where a node's link leads; null: nowhere, because there is no bucket. */
  readonly port: number | null
}

export async function openStorage(place: BytesPlace, folder: string): Promise<ChaosStorage> {
  const shared = join(folder, 'data')
  if (place === 'files') {
    return {
      bucket: null,
      folder: join(shared, 'blobs'),
      port: null,
      settingsFor: () => ({ flags: ['--data-dir', shared], env: {} }),
      async [Symbol.asyncDispose]() {},
    }
  }
  const bucket = await startFakeS3()
  const port = Number(new URL(bucket.url).port)
  // Clients are sent to the storage for downloads, over a way that is none of the nodes'.
  const front = await openFaultProxy({ target: port })
  return {
    bucket,
    folder: join(shared, 'blobs'),
    port,
    settingsFor(node, link) {
      const url = new URL(bucket.blobsUrl)
      url.searchParams.set('endpoint', `http://127.0.0.1:${link.port}`)
      url.searchParams.set('publicEndpoint', `http://127.0.0.1:${front.port}`)
      return {
        flags: ['--data-dir', join(folder, `data-${node}`), '--blobs', url.href],
        env: { ATELIER_BLOBS_KEYS: bucket.keys },
      }
    },
    async [Symbol.asyncDispose]() {
      await bucket[Symbol.asyncDispose]()
      await front[Symbol.asyncDispose]()
    },
  }
}
