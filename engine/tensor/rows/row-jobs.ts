/** Every kind of work on rows by its name: functions do not cross threads, names and parameters do. */
import { type BlendJob, type CompositeJob, openBlendRows, openCompositeRows } from '../compose/blend.ts'
import { type FilterJob, openFilterRows } from '../filters/filter-rows.ts'
import { openResizeRows, type ResizeJob } from '../resize/resize-rows.ts'
import type { RowLoop } from './row-loop.ts'
import { openValueRows, type ValueJob } from './value-rows.ts'

export type RowJob = ResizeJob | FilterJob | BlendJob | CompositeJob | ValueJob

const OPENERS: { readonly [Name in RowJob['name']]: (job: Extract<RowJob, { name: Name }>) => RowLoop } = {
  resize: openResizeRows,
  filter: openFilterRows,
  blend: openBlendRows,
  composite: openCompositeRows,
  values: openValueRows,
}

export function openRows(job: RowJob): RowLoop {
  return (OPENERS[job.name] as (job: RowJob) => RowLoop)(job)
}
