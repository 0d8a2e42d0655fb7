/** Validates Kubernetes objects and the Compose file against the published schemas in test/fixtures/deploy. */
import type { ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { read } from './files.ts'

interface Schemas {
  readonly kinds: Readonly<Record<string, object>>
  readonly definitions: Readonly<Record<string, object>>
}

/** The complaints about an object, each with where it stands. */
export type Judge = (object: { readonly apiVersion: string; readonly kind: string }) => string[]

const opened = new Map<string, Judge>()

/** Of one version; its schemas are compiled once, each when it is first needed. */
export function openKubernetes(version: string): Judge {
  const known = opened.get(version)
  if (known !== undefined) return known
  const files = [`kubernetes-${version}`, 'custom-resources'].map(
    (name) => JSON.parse(read(`test/fixtures/deploy/${name}.json`)) as Schemas,
  )
  const judges = new Map<string, ValidateFunction>()
  const judge: Judge = (object) => {
    const kind = `${object.apiVersion} ${object.kind}`
    const file = files.find(({ kinds }) => Object.hasOwn(kinds, kind))
    if (file === undefined) return [`no schema for ${kind}`]
    const compiled = judges.get(kind) ?? compile({ ...file.kinds[kind], definitions: file.definitions })
    judges.set(kind, compiled)
    return toComplaints(compiled, object)
  }
  opened.set(version, judge)
  return judge
}

function compile({ $id: _, ...schema }: Record<string, unknown>): ValidateFunction {
  return new Ajv2020({ strict: false, validateFormats: false, allErrors: true }).compile(schema)
}

export function judgeCompose(file: unknown): string[] {
  const schema = JSON.parse(read('test/fixtures/deploy/compose-spec.json')) as Record<string, unknown>
  return toComplaints(compile(schema), file)
}

function toComplaints(judge: ValidateFunction, object: unknown): string[] {
  if (judge(object)) return []
  return (judge.errors ?? []).map(
    ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
  )
}
