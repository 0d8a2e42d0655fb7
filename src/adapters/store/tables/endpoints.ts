/** Endpoints and their versions. Numbers in inputs keep their digits: a seed has up to 64 bits. */

import { type JsonValue, parseLosslessJson, stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import type {
  Endpoint,
  EndpointInput,
  EndpointOutput,
  EndpointSettings,
  EndpointState,
  Required,
} from '../../../domain/endpoints/endpoint.ts'
import { type Column, flag, integer, json, moment, nullable, table, text } from './table.ts'

function lossless<Value>(): Column<Value> {
  return {
    ...text(),
    decode: (stored) => parseLosslessJson(String(stored)) as Value,
    encode: (value) => stringifyLosslessJson(value as JsonValue),
  }
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
  settings: json<EndpointSettings>(),
  createdAt: moment(),
  updatedAt: moment(),
  revision: integer(),
  // The name of one that was removed stays taken for its numbers: they never mean two things.
  isRemoved: flag(),
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
