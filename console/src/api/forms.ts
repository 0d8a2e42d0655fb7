/** Workflows that the account keeps to run again: a document of ours, kept as it is. */
import { getJson, getText, send } from './client.ts'

export interface SavedForm {
  readonly name: string
  readonly modified_at: string
}

export interface FormDocument {
  /** JSON text: a workflow's numbers may be longer than a double. */
  readonly workflow_text: string
}

export function listForms(signal?: AbortSignal): Promise<{ readonly forms: readonly SavedForm[] }> {
  return getJson('/console/v1/forms', signal)
}

export async function getForm(name: string, signal?: AbortSignal): Promise<FormDocument> {
  return JSON.parse(await getText(`/console/v1/forms/${encodeURIComponent(name)}`, signal)) as FormDocument
}

export function saveForm(name: string, document: FormDocument): Promise<unknown> {
  return send('PUT', `/console/v1/forms/${encodeURIComponent(name)}`, document)
}

export function removeForm(name: string): Promise<unknown> {
  return send('DELETE', `/console/v1/forms/${encodeURIComponent(name)}`)
}
