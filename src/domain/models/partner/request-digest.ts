/**
 * What a node's request says, in short: equal for two sends of one request. Two sends of a form differ in the line between its
 * parts. A job that runs again hands its files over again, and they get new addresses here: such an address counts as the
 * bytes that lie behind it.
 */
import { createHash } from 'node:crypto'
import type { Asset } from '../../assets/asset.ts'
import { CONTENT_PATH } from '../../assets/signed-url.ts'

interface SentBody {
  readonly bytes: Buffer
  /** Stands between the parts of a form; null: it is none. */
  readonly divider: string | null
}

type DigestRequest = (accountId: string, body: SentBody) => Promise<string>

interface DigestDeps {
  readonly findAssets: (
    accountId: string,
    assetIds: readonly string[],
  ) => Promise<readonly Pick<Asset, 'id' | 'hash'>[]>
}

interface Span {
  readonly from: number
  readonly to: number
  readonly text: string
}

const ADDRESS = new RegExp(
  `^${CONTENT_PATH}/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\\?X-Goog-Date=[^"'\\s<>\\\\]{1,900}&signature=[A-Za-z0-9_-]{43}`,
)
const ADDRESS_MAX_LENGTH = 1100
// No node hands over as many; a body full of addresses is compared as it is.
const MAX_ADDRESSES = 64

export function createRequestDigest({ findAssets }: DigestDeps): DigestRequest {
  return async (accountId, { bytes, divider }) => {
    const found = findAddresses(bytes)
    const ids = [...new Set(found.map(({ text }) => text))]
    const assets = ids.length === 0 ? [] : await findAssets(accountId, ids)
    const hashes = new Map(assets.map(({ id, hash }) => [id, hash]))
    const addresses = found.flatMap((span) => {
      const hash = hashes.get(span.text)
      return hash === undefined ? [] : [{ ...span, text: hash }]
    })
    const dividers = divider === null ? [] : findDividers(bytes, divider)
    return digestWithout(bytes, [...addresses, ...dividers])
  }
}

/** The addresses of files of this service, each with the id of its asset. */
function findAddresses(bytes: Buffer): Span[] {
  const spans: Span[] = []
  for (let at = bytes.indexOf(`${CONTENT_PATH}/`); at >= 0; at = bytes.indexOf(`${CONTENT_PATH}/`, at + 1)) {
    const match = ADDRESS.exec(bytes.toString('latin1', at, at + ADDRESS_MAX_LENGTH))
    if (match === null) continue
    spans.push({ from: at, to: at + match[0].length, text: match[1] })
    if (spans.length > MAX_ADDRESSES) return []
  }
  return spans
}

function findDividers(bytes: Buffer, divider: string): Span[] {
  const line = Buffer.from(divider)
  const spans: Span[] = []
  for (let at = bytes.indexOf(line); at >= 0; at = bytes.indexOf(line, at + line.length))
    spans.push({ from: at, to: at + line.length, text: '' })
  return spans
}

function digestWithout(bytes: Buffer, spans: readonly Span[]): string {
  const hash = createHash('sha256')
  let from = 0
  for (const span of spans.toSorted((a, b) => a.from - b.from)) {
    // The line feed keeps what stands before and behind apart.
    hash.update(bytes.subarray(from, span.from)).update(`${span.text}\n`)
    from = span.to
  }
  return hash.update(bytes.subarray(from)).digest('base64')
}
