/** Binary frames as ComfyUI makes them. */
function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** Type 1: nobody knows whose. */
export function previewFrame(bytes: Buffer): Buffer {
  return Buffer.concat([uint32(1), uint32(2), bytes])
}

/** Type 3. */
export function textFrame(nodeId: string, text: string): Buffer {
  return Buffer.concat([uint32(3), uint32(Buffer.byteLength(nodeId)), Buffer.from(nodeId), Buffer.from(text)])
}

/** Type 4. */
export function metadataFrame(promptId: string, nodeId: string, bytes: Buffer): Buffer {
  const place = { node_id: nodeId, display_node_id: nodeId, parent_node_id: null, real_node_id: nodeId }
  const head = Buffer.from(JSON.stringify({ ...place, prompt_id: promptId, image_type: 'image/png' }))
  return Buffer.concat([uint32(4), uint32(head.length), head, bytes])
}
