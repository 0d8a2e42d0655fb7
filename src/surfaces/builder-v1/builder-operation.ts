/** What every operation of the surface starts from. */
import type { FastifyRequest } from 'fastify'
import { isJsonObject } from '../../../lib/json/lossless-json.ts'
import type { BuildCaller } from '../../domain/environments/build-caller.ts'
import { BuildError } from '../../domain/environments/build-error.ts'
import { type JsonReading, parseBody, readBodyBytes } from '../kit/bodies/json-body.ts'
import type { Contract } from '../kit/contracts/contract.ts'
import { needs } from '../kit/guards/routes.ts'
import type { SurfaceParts } from '../kit/surface-parts.ts'

export const BUILDER_PATH = '/builder/v1'
export const READ = needs('builds:read')
export const WRITE = needs('builds:write')

export interface BuilderDeps {
  readonly parts: SurfaceParts
  readonly spec: Contract
  callerOf(request: FastifyRequest): BuildCaller
  /** Scheme, host and mount prefix at which the caller reached us. */
  baseUrlOf(request: FastifyRequest): string
}

const PLAIN: JsonReading<number> = { parse: JSON.parse, readNumber: Number, maxValues: 500_000 }

export async function readBody<Body>(
  request: FastifyRequest,
  schemaName: string,
  { parts, spec }: Pick<BuilderDeps, 'parts' | 'spec'>,
): Promise<Body> {
  const bytes = await readBodyBytes(request.raw, { maxBytes: parts.limits.maxBodyBytes })
  const body: unknown = await parseBody(request.raw, bytes, PLAIN)
  if (!isJsonObject(body)) throw new BuildError('invalid_request', 'the body must be a JSON object')
  const problem = spec.check(schemaName, body, 'body')
  if (problem !== null) throw new BuildError('invalid_request', problem.replace(/^body\./, ''))
  return body as Body
}
