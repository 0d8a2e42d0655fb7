/** What a machine that joined says of itself and of its copies, with its beats. */
import type { MachineReport, ReportedCopy, ReportedStaging } from '../../service-nodes/machine-report.ts'

export interface MachineFields extends Omit<MachineReport, 'freeBytes' | 'copies'> {
  readonly free_bytes: number
  readonly copies: readonly CopyFields[]
}

interface CopyFields extends Omit<ReportedCopy, 'staging'> {
  /** Left out by an older worker, and where no models are on their way. */
  readonly staging?: StagingFields
}

interface StagingFields {
  readonly models_done: number
  readonly models_total: number
  readonly bytes_done: number
  readonly bytes_total: number | null
  readonly current_model: string | null
}

/** As many as one beat may name; what is told of further ones waits until others are gone. */
const MAX_COPIES = 1000
const MAX_TEXT = 1000

export function writeMachine({ freeBytes, copies, ...machine }: MachineReport): MachineFields {
  const cut = (text: string | null) => text?.slice(0, MAX_TEXT) ?? null
  return {
    ...machine,
    free_bytes: freeBytes,
    copies: copies.slice(0, MAX_COPIES).map(({ staging, ...copy }) => ({
      ...{ ...copy, reason: cut(copy.reason), failure: cut(copy.failure) },
      ...(staging !== null && { staging: writeStaging(staging) }),
    })),
  }
}

export function readMachine({ free_bytes: freeBytes, copies, ...machine }: MachineFields): MachineReport {
  return {
    ...machine,
    freeBytes,
    copies: copies.map(({ staging, ...copy }) => ({
      ...copy,
      staging: staging === undefined ? null : readStaging(staging),
    })),
  }
}

function writeStaging({
  modelsDone,
  modelsTotal,
  bytesDone,
  bytesTotal,
  currentModel,
}: ReportedStaging): StagingFields {
  return {
    ...{ models_done: modelsDone, models_total: modelsTotal, bytes_done: bytesDone },
    ...{ bytes_total: bytesTotal, current_model: currentModel?.slice(0, MAX_TEXT) ?? null },
  }
}

function readStaging(fields: StagingFields): ReportedStaging {
  return {
    ...{ modelsDone: fields.models_done, modelsTotal: fields.models_total, bytesDone: fields.bytes_done },
    ...{ bytesTotal: fields.bytes_total, currentModel: fields.current_model },
  }
}
