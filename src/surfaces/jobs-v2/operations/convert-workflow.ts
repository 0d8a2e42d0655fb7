/**
 * Turns a workflow as the editor saves it, or a media file that carries one, into a graph that `postJobs` takes. Nothing is
 * stored. Whatever is wrong with the file is a 422 that says so; only a request that is wrong as such is a 400.
 */
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { readEmbeddedTexts } from '../../../../lib/files/embedded-texts.ts'
import { memorySource } from '../../../../lib/files/mp4-boxes.ts'
import type { JsonObject, JsonValue } from '../../../../lib/json/lossless-json.ts'
import { writeJsonSteps } from '../../../../lib/json/write-json-steps.ts'
import { ServiceError } from '../../../domain/errors.ts'
import {
  type ConvertedFile,
  type ConvertFile,
  carriedTexts,
  withoutOddNumbers,
} from '../../../domain/workflows/convert/convert-file.ts'
import { claimOf } from '../../kit/bodies/body-memory.ts'
import { parseLosslessBody, readBodyBytes } from '../../kit/bodies/json-body.ts'
import { needs } from '../../kit/guards/routes.ts'
import { sendJson } from '../../kit/request.ts'
import type { ContextOf } from '../jobs-operation.ts'
import { toMissingView } from '../views/endpoint-view.ts'
import { API_PATH } from '../views/job-view.ts'

interface ConvertWorkflowDeps {
  readonly contextOf: ContextOf
  readonly convertFile: ConvertFile
  readonly maxBodyBytes: number
}

export function convertWorkflow(app: FastifyInstance, deps: ConvertWorkflowDeps): void {
  const { contextOf, convertFile, maxBodyBytes } = deps
  app.post(`${API_PATH}/workflows/convert`, needs('jobs:write'), async (request, reply) => {
    const { pool } = contextOf(request)
    const bytes = await readBodyBytes(request.raw, { maxBytes: maxBodyBytes })
    const content = await readWorkflowFile(request.raw, bytes)
    const converted = await convertFile(content, pool)
    const view = toConvertedView(converted) as JsonValue
    return sendJson(reply, 200, await claimOf(request.raw).turns.run(writeJsonSteps(view)))
  })
}

/** A workflow as JSON, or a file that carries one; `first`: which, if it carries both. Throws invalid_workflow. */
export async function readWorkflowFile(
  request: IncomingMessage,
  bytes: Buffer,
  first: 'prompt' | 'workflow' = 'prompt',
): Promise<JsonValue> {
  const texts = readEmbeddedTexts(memorySource(bytes))
  return texts === null ? parseFile(request, bytes) : parseCarried(request, carriedTexts(texts, first))
}

/** Not JSON, or nested too deep: a fault of the file, not of the request around it. */
async function parseFile(request: IncomingMessage, bytes: Buffer): Promise<JsonValue> {
  try {
    return await parseLosslessBody(request, bytes)
  } catch (error) {
    if (!(error instanceof ServiceError) || error.refusal !== 'invalid_request') throw error
    throw new ServiceError('invalid_workflow', `the file cannot be read as a workflow: ${error.message}`, {
      details: { node_errors: {} },
      cause: error,
    })
  }
}

async function parseCarried(request: IncomingMessage, texts: readonly string[]): Promise<JsonValue> {
  let last: unknown = new ServiceError('invalid_workflow', 'the file carries neither a workflow nor a prompt', {
    details: { node_errors: {} },
  })
  for (const text of texts) {
    try {
      return await parseFile(request, Buffer.from(withoutOddNumbers(text)))
    } catch (error) {
      last = error
    }
  }
  throw last
}

function toConvertedView({ workflow, warnings, parameters, missing }: ConvertedFile): JsonObject {
  return {
    workflow,
    warnings: warnings.map(({ nodeId, input, message }) => ({ node_id: nodeId, input, message })),
    parameters: parameters.map(({ name, nodeId, input, kind, type, value, title }) => ({
      name,
      node_id: nodeId,
      input,
      kind,
      type,
      value,
      title,
    })),
    missing: toMissingView(missing),
  }
}
