/** The statement that finds a call by what its caller was told, the same for both stores, and how its row is read. */
import type { CallProgress, ToldCall } from '../../../domain/models/calls/call-store.ts'

export type ToldRow = [id: string, model: string, progress: string]

interface ToldWords {
  readonly by: 'key' | 'task'
  readonly account: string
  readonly value: string
}

/** A provider that gives the same name twice means the newer task. */
export function toldSql({ by, account, value }: ToldWords): string {
  return `SELECT id, model, progress FROM router_call
    WHERE account_id = ${account} AND ${by} = ${value} AND task IS NOT NULL AND progress IS NOT NULL
    ORDER BY seq DESC LIMIT 1`
}

export function toToldCall(row: ToldRow | null | undefined): ToldCall | null {
  if (row === null || row === undefined) return null
  const [id, modelId, progress] = row
  const { told } = JSON.parse(progress) as CallProgress
  return told === undefined ? null : { id, modelId, told }
}
