/** The graphs that the scenarios submit. */
export const TRIVIAL_WORKFLOW = {
  '1': { class_type: 'EmptyImage', inputs: { width: 64, height: 64, batch_size: 1, color: 255 } },
  '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'bench' } },
}

/** Differs from run to run, so that no cache answers for the engine. */
export function freshWorkflow(index: number): object {
  return {
    '1': { class_type: 'EmptyImage', inputs: { width: 64, height: 64, batch_size: 1, color: index % 16_777_215 } },
    '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'bench' } },
  }
}

/** As little work as a job can be: a text that is reported. */
export function textWorkflow(index: number): object {
  return {
    '1': { class_type: 'PrimitiveString', inputs: { value: `text ${index}` } },
    '2': { class_type: 'PreviewAny', inputs: { source: ['1', 0] } },
  }
}
