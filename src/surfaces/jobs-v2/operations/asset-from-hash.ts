/** A new reference to bytes that the caller already has: 201, or 200 when the very same reference existed. */
import type { FastifyInstance } from 'fastify'
import type { AssetFromHash } from '../../../domain/assets/from-hash.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/lossless-json.ts'
import { readJsonBody } from '../../kit/json-body.ts'
import { readWireHash, toAssetView, toLinked } from '../asset-view.ts'
import type { ContentLinks } from '../content-links.ts'
import { API_PATH } from '../links.ts'
import type { OperationKit } from '../operation.ts'
import { sendJson } from '../send-json.ts'

export interface AssetFromHashDeps {
  readonly kit: OperationKit
  readonly assetFromHash: AssetFromHash
  readonly contentLinks: ContentLinks
}

const MAX_BODY_BYTES = 64 * 1024

export function assetFromHash(app: FastifyInstance, { kit, assetFromHash, contentLinks }: AssetFromHashDeps): void {
  app.post(`${API_PATH}/assets/from-hash`, async (request, reply) => {
    const context = kit.contextOf(request)
    const body = await readJsonBody(request, { maxBytes: MAX_BODY_BYTES })
    const { asset, isNewReference } = await assetFromHash({ accountId: context.accountId, ...readFields(body) })
    // `created_new` tells new bytes from bytes that were there already, and these always were.
    const view = toAssetView(asset, contentLinks.fresh(toLinked(asset), context), { createdNew: false })
    return sendJson(reply, isNewReference ? 201 : 200, JSON.stringify(view))
  })
}

function readFields(body: JsonValue) {
  if (!isJsonObject(body)) throw new ServiceError('invalid_request', 'the body must be a JSON object')
  return {
    hash: readHash(memberOf(body, 'hash')),
    filePath: readOptional(body, 'file_path', isText, 'must be a text') ?? null,
    tags: readOptional(body, 'tags', isTexts, 'must be a list of texts') ?? [],
    expiresInSeconds: readOptional(body, 'expires_in', isNumber, 'must be a whole number of seconds') ?? null,
  }
}

function readHash(value: JsonValue | undefined): string {
  const hash = typeof value === 'string' ? readWireHash(value) : null
  if (hash === null) throw invalid('hash', 'must be blake3: followed by 64 hexadecimal digits')
  return hash
}

/** null counts as left out. */
function readOptional<Value extends JsonValue>(
  body: JsonObject,
  name: string,
  is: (value: JsonValue) => value is Value,
  problem: string,
): Value | null {
  const value = memberOf(body, name) ?? null
  if (value === null) return null
  if (!is(value)) throw invalid(name, problem)
  return value
}

function memberOf(body: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(body, name) ? body[name] : undefined
}

const isText = (value: JsonValue) => typeof value === 'string'
const isNumber = (value: JsonValue) => typeof value === 'number'
const isTexts = (value: JsonValue): value is string[] => Array.isArray(value) && value.every(isText)

function invalid(field: string, problem: string): ServiceError {
  return new ServiceError('invalid_field', `${field} ${problem}`, { details: { field } })
}
