//! What is wrong with a pod template, in upstream's words.
