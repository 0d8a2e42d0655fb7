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

export function openKubernetes(version: string): Judge {
  const judges = new Map<string, ValidateFunction>()
  for (const file of [`kubernetes-${version}`, 'custom-resources']) {
    const { kinds, definitions } = JSON.parse(read(`test/fixtures/deploy/${file}.json`)) as Schemas
    const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true })
    for (const [kind, schema] of Object.entries(kinds)) {
      judges.set(kind, ajv.compile({ ...schema, $id: `${file}:${kind.replaceAll(/\W/g, '-')}`, definitions }))
    }
  }
  return (object) => {
    const kind = `${object.apiVersion} ${object.kind}`
    const judge = judges.get(kind)
    return judge === undefined ? [`no schema for ${kind}`] : toComplaints(judge, object)
  }
}

export function judgeCompose(file: unknown): string[] {
  const schema = JSON.parse(read('test/fixtures/deploy/compose-spec.json')) as object
  return toComplaints(new Ajv2020({ strict: false, validateFormats: false, allErrors: true }).compile(schema), file)
}

function toComplaints(judge: ValidateFunction, object: unknown): string[] {
  if (judge(object)) return []
  return (judge.errors ?? []).map(
    ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
  )
}
