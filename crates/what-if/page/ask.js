// A question to an instance of the module, both ways as text.
function ask(instance, question) {
  const { memory, question: room, answer, answer_at: answerAt } = instance.exports;
  const bytes = new TextEncoder().encode(question);
  const at = room(bytes.length);
  new Uint8Array(memory.buffer, at, bytes.length).set(bytes);
  const length = answer();
  // The memory may have grown meanwhile: its buffer is then another.
  return new TextDecoder().decode(new Uint8Array(memory.buffer, answerAt() >>> 0, length >>> 0));
}
