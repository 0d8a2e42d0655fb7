/** The unmodified client of the protocol in a process of its own: sends one file and tells its parent how it goes. */
import { createReadStream, statSync } from 'node:fs'
import * as tus from 'tus-js-client'

export type SenderNews =
  | { readonly kind: 'sent'; readonly bytes: number }
  /** The client has asked where to go on. */
  | { readonly kind: 'asked'; readonly bytes: number }
  | { readonly kind: 'done'; readonly assetId: string }
  | { readonly kind: 'failed'; readonly message: string }

const [path = '', endpoint = ''] = process.argv.slice(2)
// A service takes seconds to start on a busy machine. The client counts anew after every byte that got through.
const RETRY_DELAYS = Array.from({ length: 600 }, () => 200)

const tell = (news: SenderNews) => void process.send?.(news)

new tus.Upload(createReadStream(path), {
  endpoint,
  uploadSize: statSync(path).size,
  metadata: { filename: 'large.bin' },
  retryDelays: RETRY_DELAYS,
  onProgress: (bytes) => tell({ kind: 'sent', bytes }),
  onAfterResponse(request, response) {
    const offset = response.getHeader('Upload-Offset')
    if (request.getMethod() === 'HEAD' && offset !== undefined) tell({ kind: 'asked', bytes: Number(offset) })
  },
  onError: ({ message }) => tell({ kind: 'failed', message }),
  onSuccess: ({ lastResponse }) => tell({ kind: 'done', assetId: lastResponse.getHeader('Upload-Asset') ?? '' }),
}).start()
