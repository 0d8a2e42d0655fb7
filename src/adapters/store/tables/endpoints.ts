/** Endpoints, their versions, and links to their pages. Numbers in inputs keep their digits: a seed has up to 64 bits. */

import { type JsonValue, parseLosslessJson, stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import {
  DEFAULT_SETTINGS,
  type Endpoint,
  type EndpointInput,
  type EndpointOutput,
  type EndpointSettings,
  type EndpointState,
  type Required,
} from '../../../domain/endpoints/endpoint.ts'
import type { ShareLimits } from '../../../domain/endpoints/shares/share.ts'
import { bytes, type Column, flag, integer, json, moment, nullable, table, text } from './table.ts'

export function lossless<Value>(): Column<Value> {
  return {
    ...text(),
    decode: (stored) => parseLosslessJson(String(stored)) as Value,
    encode: (value) => stringifyLosslessJson(value as JsonValue),
  }
}

/** What was stored by an earlier version lacks what came later. */
function settings(): Column<EndpointSettings> {
  const stored = json<EndpointSettings>()
  return { ...stored, decode: (value) => ({ ...DEFAULT_SETTINGS, ...stored.decode(value) }) }
}

export const endpoint = table('endpoint', ['accountId', 'name'], {
  accountId: text(),
  name: text(),
  title: text(),
  description: text(),
  state: text<EndpointState>(),
  currentVersion: integer('integer'),
  lastVersion: integer('integer'),
  aliases: json<Endpoint['aliases']>(),
  settings: settings(),
  createdAt: moment(),
  updatedAt: moment(),
  revision: integer(),
  // The name of one that was removed stays taken for its numbers: they never mean two things.
  isRemoved: flag(),
})

/** Written with the settings of the endpoint, which say the same: by it an account finds what others share with it. */
export const endpointCaller = table('endpoint_caller', ['caller', 'accountId', 'name'], {
  // The id of an account, or EVERYONE.
  caller: text(),
  accountId: text(),
  name: text(),
})

export const endpointVersion = table('endpoint_version', ['accountId', 'name', 'number'], {
  accountId: text(),
  name: text(),
  number: integer('integer'),
  hash: text(),
  note: text(),
  createdAt: moment(),
  createdBy: nullable(text()),
  graph: text(),
  inputs: lossless<readonly EndpointInput[]>(),
  outputs: json<readonly EndpointOutput[]>(),
  required: json<Required>(),
})

export const endpointShare = table('endpoint_share', ['id'], {
  id: text(),
  accountId: text(),
  name: text(),
  version: nullable(text()),
  note: text(),
  limits: json<ShareLimits>(),
  referrers: json<readonly string[]>(),
  createdAt: moment(),
  expiresAt: moment(),
  revokedAt: nullable(moment()),
  createdBy: nullable(text()),
  digest: bytes(),
})
