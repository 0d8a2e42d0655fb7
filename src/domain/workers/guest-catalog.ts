/**
 * What an engine of a joined worker can run, looked at before it is kept. Every process of the service reads it and validates graphs
 * with it, so it is bounded in values and classes, and each class is read here once as those processes will read it.
 */
import { isUtf8 } from 'node:buffer'
import { readNodeSpec } from '../../../engine/graph/input-specs.ts'
import type { NodeCatalog } from '../../../engine/graph/node-catalog.ts'
import { isJsonObject, keepNumber } from '../../../lib/json/lossless-json.ts'
import { JsonLimitError, readJsonSteps } from '../../../lib/json/read-json-steps.ts'
import type { Turns, Work } from '../../../lib/waiting/turns.ts'
import { toStoredCatalog } from '../engine/directory/catalog-text.ts'
import { ServiceError } from '../errors.ts'
import { uniteCatalogs } from '../workflows/union-catalog.ts'

/** Thousands of node classes with the names of all weights. */
export const MAX_CATALOG_BYTES = 32 * 1024 * 1024
const MAX_CLASSES = 20_000
const LIMITS = { maxDepth: 64, maxValues: 2_000_000, maxMembers: MAX_CLASSES, maxLongDigits: 10_000 }

/** Throws invalid_request, payload_too_large. */
export async function mustBeCatalog(bytes: Buffer, turns: Turns): Promise<void> {
  if (!isUtf8(bytes)) throw refused('its text is not UTF-8')
  try {
    await turns.run(checkSteps(bytes))
  } catch (error) {
    if (error instanceof ServiceError) throw error
    if (!(error instanceof JsonLimitError)) throw refused('it cannot be read', error)
    throw new ServiceError(
      'payload_too_large',
      `a catalog may have ${MAX_CLASSES} classes and ${LIMITS.maxValues} values`,
      { cause: error },
    )
  }
}

function* checkSteps(bytes: Buffer): Work<void> {
  const stored = yield* readJsonSteps(bytes, { readNumber: keepNumber, limits: LIMITS })
  if (!isJsonObject(stored)) throw refused('it must be a JSON object')
  const { catalog } = toStoredCatalog(stored)
  yield
  // As beside another engine that has the same classes.
  const united = uniteCatalogs([catalog, catalog])
  for (const classType of catalog.classTypes()) {
    if (!isSound(catalog, united, classType)) throw refused(`the class ${classType.slice(0, 100)} is not described`)
    yield
  }
}

function isSound(catalog: NodeCatalog, united: NodeCatalog, classType: string): boolean {
  try {
    const definition = united.find(classType)
    if (definition === null) return false
    const { outputTypes } = readNodeSpec(definition)
    const { fileInputs, folderInputs } = catalog
    const named = [catalog.selfCheckedInputs(classType), fileInputs?.(classType), folderInputs?.(classType)]
    return Array.isArray(outputTypes) && named.every(areNames)
  } catch {
    return false
  }
}

function areNames(names: unknown): boolean {
  return names === undefined || (Array.isArray(names) && names.every((name) => typeof name === 'string'))
}

function refused(problem: string, cause?: unknown): ServiceError {
  return new ServiceError('invalid_request', `this is not a catalog of node classes: ${problem}`, { cause })
}
